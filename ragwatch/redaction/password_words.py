"""Words that introduce passwords and one-time codes, by language; in lower case."""

from __future__ import annotations


def _rows(text: str) -> tuple[str, ...]:
    """The words of a text in which a comma or the end of a line stands behind each."""
    return tuple(word.strip() for line in text.split("\n") for word in line.split(",") if word.strip())


PASSWORDS = _rows("""
    password, passwd, passcode, passphrase, pwd, security answer
    passwort, kennwort, losungswort, zugangscode, mdp, mot de passe, contrasena, senha, palavra-passe
    parola d'ordine, wachtwoord, toegangscode, haslo, parola, parole, sifre, sifra, losenord, adgangskode, kodeord
    passord, salasana
    heslo, jelszo, geslo, lozinka, parool, slaptazodis, kata sandi, mat khau
""")
"""Words that mean a password, wherever they stand."""
PARTS_OF_PASSWORDS = _rows("""
    pass, pwd, wort, woord, scode, mdp, contras, senha, parol, sifr, losen, adgang, kodeo, salas, hesl, jelsz, gesl
    lozin, parool, slapt, kata s, mat k, hasl, security a
""")
"""Of these words each contains one: most texts have none, and are not searched for the words."""
FOREIGN_PASSWORDS = _rows("""
    парол, кодовое слово, гасло, шифра, лозинк
    密码, 密碼, 口令, パスワード, パスフレーズ, 暗証番号, 비밀번호, 암호, 패스워드
    كلمة المرور, كلمة السر, رمز عبور, סיסמ, รหัสผ่าน, पासवर्ड, κωδικ, συνθηματικ
    hasł, şifre, lösenord, jelsz, parolă, contraseñ, mật khẩu, slaptažod, šifra
""")
"""The same with letters that are not ASCII; of words that are inflected the part that stays."""
SHORT = ("pass", "clave", "pw")
"""Words that may mean much else or are part of another: they stand alone, or behind `_`, `-` or a dot."""
CODES = _rows("""
    recovery code, backup code, your code, dein code, ihr code, votre code, il tuo codice, uw code, din kode
    otp, totp, 2fa code, mfa code, one-time, one time code, one time pass, verification code, security code, login code
    access code, auth code, authentication code, confirmation code, sms code, passcode, unlock code, pin, pincode
    pinkod, tan, mtan
    cvv, cvc, zugangscode, einmalcode, einmalpasswort, sicherheitscode, code d'acc, verificatiecode, toegangscode
    beveiligingscode, codice di verifica, codice di sicurezza, codice di accesso, codice temporaneo, kod weryfikacyjny
    kod sms, kod dost, verifieringskod, bekreftelseskode, engangskode, vahvistuskoodi, kode verifikasi, kode otp
""")
"""Words that a code of digits stands behind."""
PARTS_OF_CODES = (
    *("code", "otp", "pin", "mtan", "cvv", "cvc", "one-time", "one time", "kod", "kood", "codice", "einmal"),
    *("tan ", "tan:", "tan=", "tan-"),
)
"""The same for these words."""
FOREIGN_CODES = _rows("""
    bestätigungscode, code de vérification, code de sécurité, code à usage unique, código de, doğrulama kodu, onay kodu
    engångskod, säkerhetskod, ověřovací kód, mã xác nhận, mã xác minh
    şifre, ваш код, tu código, seu código, twój kod
    код подтверждения, код доступа, код из смс, пин, одноразовый, код безопасности, смс-код, код підтвердження
    验证码, 驗證碼, 校验码, 动态码, 动态密码, 密码, 認証コード, 確認コード, ワンタイムパスワード, 暗証番号
    인증번호, 인증 코드, 인증코드, 핀번호, 비밀번호, رمز التحقق, קוד אימות, κωδικ, รหัส otp
""")
"""The same with letters that are not ASCII."""

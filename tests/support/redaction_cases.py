"""Cases on which recall and precision of redaction are measured, by class; all of it made up.

Keys stand alone in a text, without a word that says what they are. A password stands between « and ».
"""

from __future__ import annotations

from support.vendor_examples import UUID

KEYS = f"""
AQ.Ab8RN6<url44>
AIza<url35>
tgp_v1_<url43>
csk-<low48>
pa-<url43>
al-<url43>
jina_<hex32><url28>
fc-<hex32>
wandb_v1_<url22>_<url52>
ak-<an22>
as-<an22>
flp_<an46>
sk_org_live_<an40>
tskey-auth-k<an11>CNTRL-<an32>
tskey-client-k<an11>CNTRL-<an32>
tskey-api-k<an11>CNTRL-<an32>
apify_api_<an36>
e2b_<hex40>
m0-<an40>
mdb_sa_sk_<url40>
sk_<hex48>
rpa_<up34><low6>
rc_<hex64>
cpk_<hex32>.<hex32>.<an32>
esecret_<low26>
llx-<an48>
AstraCS:<an24>:<hex64>
ck-<an43>
tpuf_<an32>
nk-<url43>
pylf_v1_us_<an43>
BSA<url28>
ydc-sk-<an16>-<an32>
xau_<an42>
KGAT_<hex32>
lsv2_pt_<hex32>_<hex10>
sk-lf-{UUID}
pcsk_<an5>_<an63>
tvly-dev-<an32>
pplx-<an48>
gsk_<an52>
xai-<an80>
nvapi-<url64>
hf_<an34>
r8_<an37>
fw_<an24>
sk-or-v1-<hex64>
sk-proj-<url60>T3BlbkFJ<url60>
sk-ant-api03-<url93>AA
sk-helicone-<low7>-<low7>-<low7>-<low7>
bb_live_<url27>
key_<hex64>
crsr_<hex64>
ddp_<an36>
vtwn_<an43>
SCW<up17>
{UUID}:<hex32>
ucat_<up26>
akab-<low16>-<low16>
dbtc_<url40>
dbtu_<url40>
ghp_<an36>
github_pat_<an22>_<an59>
glpat-<url20>
xoxb-<dig12>-<dig13>-<an24>
AKIA<up16>
LTAI5t<an18>
bce-v3/ALTAK-<an21>/<hex40>
AKLT<an42>
dop_v1_<hex64>
sk_live_<an24>
pk_<dig8>_<up32>
ATTA<hex64><hex8>
ATATT3xFfGF0<url180>
lin_api_<an40>
ntn_<dig11><an35>
figd_<url40>
cal_live_<hex32>
md-<an22>
mlsn.<hex64>
SG.<url22>.<url43>
re_<an8>_<an24>
pk_<hex34>
KEY<hex32>_<an22>
os_v2_app_<low103>
<an6>.<an6>:<url43>
<hex32>.<an16> of zhipu
n8n_api_eyJ<url36>.<url90>.<url43>
app-<an24>
dataset-<an24>
bp_pat_<an36>
VF.DM.<hex24>.<an16>
signkey-prod-<hex64>
tr_prod_<an24>
tr_pat_<low40>
secret-live-<url36>
xaat-{UUID}
phx_<an43>
hbp_<an36>
glsa_<an32>_<hex8>
cxtp_<an30>
rootly_<hex64>
dckr_pat_<url27>
npm_<an36>
pypi-AgEIcHlwaS5vcmc<url160>
hvs.<url95>
dp.pt.<an43>
ops_eyJ<b64250>
polar_oat_<url43>
pdl_live_apikey_01<low24>_<an22>_<an3>
kpat_<an52>
zpka_<hex32>_<hex8>
PMAT-<up26>
persona_production_<hex40>
samsara_api_<an30>
aio_<an28>
BBFF-<an30>
waka_{UUID}
1000.<hex32>.<hex32>
ck_<hex40>
cs_<hex40>
FPSX<hex32>
pina_<up40>
napi_<low64>
sbp_<hex40>
AVNS_<url19>
CCDB1_<an22>_<an40>
essu_<b6460>
upjwt_<an40>
composio ak_<an20>
EZAK<an54>
shpat_<hex32>
pat-na1-{UUID}
rnd_<an32>
vck_<an56>
lip_<an36>
sktsec_<url40>
inference_<an40>
"""

PASSWORDS = """
smtp_pass=«Tulp3nfeld»
DB_PASS: «regen9bogen»
pass: «Kaff33pause»
the user is bob, pass: «b0bs-boat»
MAIL_PASS="«lange lippe»"
login anna / pass «An4nas!kopf»
passphrase: «seven7-purple-otters»
The passphrase is "«seven purple otters sing»"
passphrase = '«river bank moss stone»'
PIN: «4821»
My card PIN is «7306»
your PIN code: «918273»
SIM pin = «0042»
OTP: «482913»
one-time code «603 118»
Your verification code is «771204».
one-time password: «19384756»
Use «550912» as your login code
2FA code: «118402»
security code is «903172»
«441207» is your verification code
root password is «Sommer2024!»
my password was «hunter22»
pwd «Xy7!kkp0»
the admin password: «Adm1n!!»
login: carol password: «c4r0l#9»
user/password: «guest1234»
пароль: «qwerty12»
Мой пароль «Zima2023!»
пароль от почты — «Lena1987»
Пароль=«snegir77»
пин-код: «5521»
код подтверждения: «662013»
кодовое слово: «берёза42»
密码：«abc12345»
我的密码是«Hq9!xian»
密码: «longxia88»
口令：«wukong#7»
验证码：«837465»
验证码是 «294810»
パスワード：«sakura99»
パスワードは«Fuji!3776»です
暗証番号は«2580»です
認証コード: «605914»
wachtwoord: «fiets4all»
mijn wachtwoord is «Kaas!2020»
pincode: «9904»
wachtwoordzin: "«vier blauwe fietsen»"
hasło: «zima1234»
moje hasło to «Wisla!77»
kod PIN: «3391»
kod weryfikacyjny: «775310»
parola: «Kedi1907»
şifre: «Ankara.06»
şifrem «Bjk!1903»
Şifreniz: «deniz55x»
doğrulama kodu: «330184»
lösenord: «blomma12»
mitt lösenord är «Snö!vit7»
engångskod: «884120»
pinkod «6172»
Passwort: «Regen!bach9»
mein Passwort lautet «Fuchs99bau»
Kennwort ist «Dorf!teich4»
Zugangscode: «48-KX-91»
TAN: «593012»
Einmalcode: «220817»
mot de passe : «Chouette!3»
le mot de passe est «Lapin2bois»
code de vérification : «914402»
mdp: «soleil_88»
contraseña: «Gato.2bl»
la contraseña es «Perro!55»
clave: «mesa4roja»
código de verificación: «307755»
senha: «praia2verde»
minha senha é «Sol!1988»
código de acesso: «771-933»
la password è «Mare!2021»
parola d'ordine: «gufo9alto»
codice di verifica: «482005»
비밀번호: «hanok77!»
비밀번호는 «Seoul!88»입니다
인증번호: «610283»
adgangskode: «Hav1fugl»
salasana: «metsä33x»
heslo: «Praha!42»
passord: «Fjord88b»
jelszó: «Duna1kek»
parolă: «Munte!19»
пароль до бази: «Kyiv2014!»
كلمة المرور: «qamar2023»
הסיסמה: «yam4kahol»
mật khẩu: «pho!2022»
kata sandi: «bali88ok»
รหัสผ่าน: «chang!77»
पासवर्ड: «dilli#11»
κωδικός: «Athina!04»
smtp.password=«mailgun77x»
spring.datasource.password: «s3ededge»
"db_pwd": "«n0t so easy»"
REDIS_AUTH=«r3d1s-sn4ck»
LDAP_BIND_PW=«b1nd-w1th-me»
<pass>«gr33ntea»</pass>
--password «Sup3rF00d»
--pass=«tiny2boat»
credentials: bob / «t0pS3cr3t!»
unlock code: «77-1942»
security answer: «Fluffy2009»
tool --db-password «sommer99» run
CVV: «481»
PIN de la tarjeta: «9072»
recovery code: «8F2K-99QX»
"""

EMAILS = """
jane [at] example [dot] com
jane(at)example.com
jane (at) example (dot) com
jane AT example DOT com
jane.doe at example dot org
jane＠example.com
jane﹫example．com
jane&#64;example.com
jane&#x40;example&#46;com
jane&commat;example&period;com
jane_at_example_dot_com
jane{at}example{dot}co{dot}uk
jane <at> example <dot> com
jane[@]example.com
jane(@)example[.]com
jane@example[.]com
jane@example(dot)com
jane @ example . com
j a n e @ e x a m p l e . c o m
jane -at- example -dot- com
jane\\u0040example.com
jane%40example.com
jane [ät] beispiel [punkt] de
jane arroba ejemplo punto es
jane(arroba)ejemplo.es
jane [собака] primer [точка] ru
jane [małpa] przyklad [kropka] pl
jane chez exemple point fr
jane at sub dot example dot co dot uk
jane.doe+x (AT) example.com
jane at example (dot) com
e-mail: jane at example.com
jane #at# example #dot# com
jane*at*example*dot*com
jane@ example.com
jane @example.com
jane\u200b@example.com
jane@exam\u00adple.com
"""

HARMLESS = r"""
rng = np.random.default_rng(4916338506719342)
seed=4539578763621486, and random_state 4716108999716531
SeedSequence(entropy=4929487295184571) spawns streams
np.random.seed(4532015112830366)
array([4539578763621486, 4716108999716531], dtype=uint64)
See section 1.2.3.4 and sections 10.4.2.1 to 10.4.2.7.
as in 4.2.1.3, where 4.2.1 ends
3.1.12.2 Selection of the encoder
RFC 7231 section 5.3.1.2, clause 6.1.2.3 and Table 4.1.2.1
(§ 2.3.4.1) says so; chapter 11.2.1.4 as well
credential_source = Ec2InstanceMetadata
the source of the credential is EcsContainer or Ec2InstanceMetadata
"ClientToken": "123e4567-e89b-42d3-a456-426614174000"
--client-token 550e8400-e29b-41d4-a716-446655440000
ClientRequestToken=550e8400-e29b-41d4-a716-446655440000
idempotency token: 7b1f0e4c-2f0a-4a7e-9a0e-2d7b5f0a9c11
The pin 13 of the board and GPIO pin 1024 are outputs
error code: 500123 and status code is 404000
The exit code is 137, the error code 1045.
pass: the test passed in 12 s
pass: 12, fail: 3, skipped: 4
first pass: 2048 tokens; second pass: 4096 tokens
PASS: test_parser_01
3 pass, 0 fail; pass rate: 0.9731
pass --verbose to see more, or pass 10 workers
The code is 2048 lines long and the code 123456 is a row id.
Look at example.com and look at the dot com era.
The service is hosted at example.com, at port 8080.
Meet at noon dot the i.
x_at_y_dot_z is a name
matrix @ vector . transpose
chatcmpl-AbC123dEf456GhI789jKl012MnO345 took 3 s
msg_01XFDUDYJgAACzvnptvVoYEL and toolu_01A09q90qwq90lq917835lq9 and req_011CSHoEeqs5C35K2UUqR7Fy
cus_NffrFeUfNV2Hib and pi_3MtwBwLkdIwHu7ix28a3tqPa and evt_1MqqbKLt4dXK03v5qaIbiNCC
run_1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e of thread_abc123def456ghi789
app-7d9f8b6c5d-x2x4z restarted; app-deployment-controller-manager too
dataset-2024-01-15-full-version-2 and dataset-imdb-reviews-large-v2
data-science-key-results-2024 and test_v1_model_checkpoint_0042
pa-rather-long-hyphenated-word-2024 and as-long-as-you-like-2023
ck-editor5-build-classic-v41 and key_performance_indicator_2024
model_v1_9b2f3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b
sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
Order 7707083893 of 2024, invoice 526317984689 is open.
part number 5260250995, serial 112233445
22AAAAA0000A1Z4 is no number
build 500100732259 took 3 h
The OTP supervisor of Erlang restarts 1000 children
The key to the chapter is the password policy: 12 characters or more
parola chiave e senha forte; a clave is a key; heslo je povinné
пароль обязателен и код ошибки 500123
密码不能为空，长度为 8 到 16 位
wachtwoord is verplicht; hasło jest wymagane; lösenord krävs
The security code review took 123456 ms
the verification code path handles 200000 rows
TAN layer 123456
tool --db-password optional --force
OTP: 123 of them were sent
the tan: 123456 is a tangent
the pin of the board: 1024
add the password to server2 and the passphrase on host3
resp_AbC123dEf456GhI789jKl012MnO345pQ is an id
"""

"""Keys of vendors that are known by their prefix or by a fixed part in them.

Names and shapes are facts, taken from the rule sets of gitleaks (MIT) and detect-secrets (Apache-2.0) and from the
vendors' documentation, and written here as an anchor and the characters around it. Lengths are lower bounds: vendors
make their keys longer from time to time. Keys without a fixed part are found by the name they are assigned to
(`assignments`).
"""

from __future__ import annotations

import re

from ragwatch.core.redaction.rule import RedactionRule, SensitiveKind, Span, Taken, TextView

_MIN_KEY_CHARS = 16  # of the shortest key, which has no white space
_GLUE = r"(?<![A-Za-z0-9_-])"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_VARIED = re.compile(r"[0-9]|[a-z][A-Z]|[A-Z]{8}")


def _varied(match: re.Match[str]) -> Span | None:
    """Accepts a key with a digit or a capital inside; hyphenated words (`sk-learn-compatible-models`) have none."""
    value = match["secret"] if "secret" in match.re.groupindex else match[0]
    span = match.span("secret") if "secret" in match.re.groupindex else match.span()
    return span if _VARIED.search(value) else None


# Rule, vendor, prefixes (separated by spaces), pattern of what follows.
_PREFIXED: tuple[tuple[str, str, str, str], ...] = (
    ("anthropic-key", "Anthropic", "sk-ant-", r"[A-Za-z0-9_-]{16,}"),
    ("openai-key", "OpenAI and others with keys like it", "sk-", r"[A-Za-z0-9_-]{16,}"),
    ("huggingface-token", "Hugging Face", "hf_ api_org_", r"[A-Za-z0-9]{20,}"),
    ("groq-key", "Groq", "gsk_", r"[A-Za-z0-9]{20,}"),
    ("replicate-token", "Replicate", "r8_", r"[A-Za-z0-9]{30,}"),
    ("perplexity-key", "Perplexity", "pplx-", r"[A-Za-z0-9]{30,}"),
    ("xai-key", "xAI", "xai-", r"[A-Za-z0-9]{40,}"),
    ("nvidia-key", "NVIDIA", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    ("fireworks-key", "Fireworks AI", "fw_", r"[A-Za-z0-9]{20,}"),
    ("tavily-key", "Tavily", "tvly-", r"[A-Za-z0-9-]{20,}"),
    ("pinecone-key", "Pinecone", "pcsk_", r"[A-Za-z0-9_]{30,}"),
    ("langsmith-key", "LangSmith", "lsv2_pt_ lsv2_sk_ ls__", r"[A-Za-z0-9_]{24,}"),
    ("langfuse-key", "Langfuse", "sk-lf- pk-lf-", _UUID),
    ("github-token", "GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9_]{20,}(?:\.[A-Za-z0-9_-]{4,}){0,4}"),
    ("github-fine-grained-token", "GitHub", "github_pat_", r"[A-Za-z0-9_]{20,}"),
    (
        "gitlab-token",
        "GitLab",
        "glpat- glrt- glrtr- gldt- glptt- glft- glimt- glagent- glcbt- glsoat- gloas- glffct- glwt- GR1348941",
        r"[A-Za-z0-9_.-]{16,}",
    ),
    ("slack-token", "Slack", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9%-]{10,}"),
    ("slack-config-token", "Slack", "xoxe.", r"xox[bp]-[A-Za-z0-9-]{10,}"),
    ("slack-app-token", "Slack", "xapp- xwfp-", r"[A-Za-z0-9-]{10,}"),
    ("aws-access-key-id", "AWS", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws-session-token", "AWS", "FwoGZXIvYXdz FQoGZXIvYXdz IQoJb3JpZ2lu", r"[A-Za-z0-9+/=%_-]{40,}"),
    ("aws-bedrock-key", "AWS Bedrock", "ABSK bedrock-api-key-", r"[A-Za-z0-9+/_-]{40,}={0,2}"),
    ("aws-mws-token", "AWS", "amzn.mws.", _UUID),
    ("google-api-key", "Google", "AIza", r"[A-Za-z0-9_-]{30,}"),
    ("google-oauth-token", "Google", "ya29. 1//0", r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{4,}){0,4}"),
    ("google-storage-key", "Google", "GOOG", r"(?:1E[A-Z0-9]{57}|[A-Z0-9]{20})(?![A-Za-z0-9_-])"),
    ("google-oauth-secret", "Google", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    ("alibaba-access-key-id", "Alibaba Cloud", "LTAI", r"[A-Za-z0-9]{12,}"),
    ("tencent-secret-id", "Tencent Cloud", "AKID", r"[A-Za-z0-9]{32,}"),
    ("yandex-key", "Yandex Cloud", "AQVN t1.9eu", r"[A-Za-z0-9_.=-]{30,}"),
    ("digitalocean-token", "DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"[A-Fa-f0-9]{32,}"),
    ("databricks-token", "Databricks", "dapi dkea dose", r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("stripe-key", "Stripe", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", r"[A-Za-z0-9+/]{10,}"),
    ("square-token", "Square", "sq0atp- sq0csp- sq0idp- EAAAE EAAAl", r"[A-Za-z0-9_-]{20,}"),
    ("paypal-token", "PayPal", "access_token$production$ access_token$sandbox$", r"[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("braintree-token", "Braintree", "access_token$", r"[a-z]{4,16}\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("flutterwave-key", "Flutterwave", "FLWSECK- FLWSECK_TEST- FLWPUBK_TEST-", r"[A-Za-z0-9-]{12,}"),
    ("razorpay-key", "Razorpay", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{10,}"),
    ("shippo-token", "Shippo", "shippo_live_ shippo_test_", r"[A-Fa-f0-9]{32,}"),
    ("easypost-token", "EasyPost", "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    ("duffel-token", "Duffel", "duffel_live_ duffel_test_", r"[A-Za-z0-9_=-]{30,}"),
    ("twilio-sid", "Twilio", "SK AC", r"[0-9a-fA-F]{32}(?![A-Za-z0-9])"),
    ("sendgrid-key", "SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun-key", "Mailgun", "key- pubkey-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("brevo-key", "Brevo", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("resend-key", "Resend", "re_", r"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    ("npm-token", "npm", "npm_", r"[A-Za-z0-9]{30,}"),
    ("pypi-token", "PyPI", "pypi-", r"AgE[A-Za-z0-9_-]{40,}"),
    ("rubygems-key", "RubyGems", "rubygems_", r"[a-f0-9]{40,}"),
    ("nuget-key", "NuGet", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("clojars-token", "Clojars", "CLOJARS_", r"[A-Za-z0-9]{40,}"),
    ("crates-token", "crates.io", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("docker-hub-token", "Docker Hub", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    ("artifactory-token", "JFrog Artifactory", "AKCp cmVmd", r"[A-Za-z0-9]{50,}"),
    ("cloudflare-origin-key", "Cloudflare", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("cloudflare-token", "Cloudflare", "cfut_ cfat_ cfk_", r"[A-Za-z0-9_-]{30,}"),
    ("heroku-key", "Heroku", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    ("vercel-token", "Vercel", "vcp_ vca_ vci_ vcr_ vck_ vercel_", r"[A-Za-z0-9]{20,}"),
    ("vercel-blob-token", "Vercel", "vercel_blob_rw_", r"[A-Za-z0-9]{8,}_[A-Za-z0-9]{20,}"),
    ("netlify-token", "Netlify", "nfp_ nfc_ nfu_ nfo_", r"[A-Za-z0-9_-]{30,}"),
    ("fly-token", "Fly.io", "fo1_ fm1r_ fm1a_ fm2_", r"[A-Za-z0-9+/_-]{40,}={0,3}"),
    ("render-key", "Render", "rnd_", r"[A-Za-z0-9]{24,}"),
    ("scalingo-token", "Scalingo", "tk-us-", r"[A-Za-z0-9_-]{40,}"),
    ("linear-key", "Linear", "lin_api_ lin_oauth_ lin_wh_", r"[A-Za-z0-9]{30,}"),
    ("notion-token", "Notion", "ntn_ secret_", r"[A-Za-z0-9]{40,}"),
    ("airtable-token", "Airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("airtable-key", "Airtable", "key", r"(?=[a-z]{0,13}[A-Z0-9])[A-Za-z0-9]{14}(?![A-Za-z0-9_-])"),
    ("asana-token", "Asana", "1/ 2/", r"\d{10,20}(?:/\d{10,20})?:[a-f0-9]{32}"),
    ("atlassian-token", "Atlassian (Jira, Confluence, Bitbucket)", "ATATT3 ATCTT3 ATBB ATSTT3", r"[A-Za-z0-9_=-]{20,}"),
    ("datadog-key", "Datadog", "ddapi_ ddapp_ dd_pat_", r"[A-Za-z0-9]{20,}"),
    ("new-relic-key", "New Relic", "NRAK- NRII- NRJS- NRAA- NRRA- NRIQ-", r"[A-Za-z0-9_-]{16,}"),
    ("sentry-token", "Sentry", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9+/=_]{32,}"),
    ("grafana-token", "Grafana", "glsa_ glc_", r"[A-Za-z0-9+/_]{28,}={0,3}"),
    ("pagerduty-key", "PagerDuty", "u+", r"[A-Za-z0-9_-]{18}(?![A-Za-z0-9_-])"),
    ("dynatrace-token", "Dynatrace", "dt0c01. dt0s01. dt0s16.", r"[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{32,64}"),
    ("honeycomb-key", "Honeycomb", "hcaik_ hcalk_ hcxik_ hcxlk_ hcbik_", r"[A-Za-z0-9]{24,}"),
    ("posthog-key", "PostHog", "phc_ phx_", r"[A-Za-z0-9]{30,}"),
    ("launchdarkly-key", "LaunchDarkly", "sdk- mob- api-", _UUID),
    ("confluent-key", "Confluent", "cflt", r"[A-Za-z0-9+/]{40,}"),
    ("planetscale-token", "PlanetScale", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[A-Za-z0-9_=.-]{30,}"),
    ("supabase-token", "Supabase", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{20,}"),
    ("neon-key", "Neon", "napi_", r"[a-z0-9]{40,}"),
    ("aiven-token", "Aiven", "AVNS_", r"[A-Za-z0-9_-]{15,}"),
    ("clickhouse-key", "ClickHouse Cloud", "4b1d", r"[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("pulumi-token", "Pulumi", "pul-", r"[a-f0-9]{40}"),
    ("vault-token", "HashiCorp Vault", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),
    ("vault-legacy-token", "HashiCorp Vault", "s. b.", r"(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![A-Za-z0-9_.-])"),
    ("doppler-token", "Doppler", "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", r"[A-Za-z0-9_.-]{30,}"),
    ("1password-token", "1Password", "ops_eyJ", r"[A-Za-z0-9+/_-]{40,}={0,3}"),
    (
        "1password-secret-key",
        "1Password",
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    ("infracost-key", "Infracost", "ico-", r"[A-Za-z0-9]{32}"),
    ("prefect-key", "Prefect", "pnu_ pnb_", r"[A-Za-z0-9]{30,}"),
    ("circleci-token", "CircleCI", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{30,}"),
    ("buildkite-token", "Buildkite", "bkua_ bkaj_ bkct_", r"[a-z0-9]{30,}"),
    ("sonar-token", "Sonar", "squ_ sqp_ sqa_", r"[a-f0-9]{40}"),
    ("sourcegraph-token", "Sourcegraph", "sgp_ slk_", r"(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40,}"),
    ("snyk-token", "Snyk", "snyk_uat. snyk_sat.", r"[A-Za-z0-9_.-]{20,}"),
    ("figma-token", "Figma", "figd_ figo_ figr_", r"[A-Za-z0-9_-]{30,}"),
    ("postman-key", "Postman", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("typeform-token", "Typeform", "tfp_", r"[A-Za-z0-9_.=-]{40,}"),
    ("contentful-token", "Contentful", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    ("readme-key", "ReadMe", "rdme_", r"[a-z0-9]{60,}"),
    ("frameio-token", "Frame.io", "fio-u-", r"[A-Za-z0-9_=-]{50,}"),
    ("adobe-secret", "Adobe", "p8e- p8-", r"[A-Za-z0-9_-]{32,}"),
    ("shopify-token", "Shopify", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"[a-fA-F0-9]{32}"),
    ("hubspot-token", "HubSpot", "pat-na1- pat-na2- pat-eu1-", r"[A-Za-z0-9-]{30,}"),
    ("facebook-token", "Facebook", "EAA", r"[A-Za-z0-9]{80,}"),
    ("instagram-token", "Instagram", "IGQV IGAA", r"[A-Za-z0-9_-]{80,}"),
    ("twitter-bearer", "X (Twitter)", "AAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{40,}"),
    ("linkedin-secret", "LinkedIn", "WPL_AP1.", r"[A-Za-z0-9]{12,20}\.[A-Za-z0-9+/]{4,12}={0,2}"),
    ("dropbox-token", "Dropbox", "sl.", r"(?:u\.)?[A-Za-z0-9_=-]{100,}"),
    ("mapbox-token", "Mapbox", "sk.eyJ pk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    (
        "okta-token",
        "Okta",
        "00",
        r"(?=[A-Za-z0-9_-]{0,38}[A-Z])(?=[A-Z0-9_-]{0,38}[a-z])[A-Za-z0-9_-]{40}(?![A-Za-z0-9_-])",
    ),
    ("openshift-token", "OpenShift", "sha256~", r"[A-Za-z0-9_-]{40,}"),
    ("octopus-key", "Octopus Deploy", "API-", r"[A-Z0-9]{25,}"),
    ("harness-token", "Harness", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("maxmind-key", "MaxMind", "mmk_", r"[A-Za-z0-9_]{30,}"),
    ("age-secret-key", "age", "AGE-SECRET-KEY-1", r"[A-Za-z0-9]{50,}"),
    ("plaid-token", "Plaid", "access-sandbox- access-development- access-production-", _UUID),
    ("intra42-secret", "42 School", "s-s4t2ud- s-s4t2af-", r"[a-f0-9]{64}"),
)


def _prefixed(name: str, vendor: str, prefixes: str, rest: str) -> RedactionRule:
    anchors = tuple(prefixes.split())
    starts = "|".join(map(re.escape, anchors))
    return RedactionRule(
        name, SensitiveKind.KEY, re.compile(f"{_GLUE}(?:{starts}){rest}"), vendor, _varied, anchors=anchors
    )


def _inner(name: str, vendor: str, anchors: str, pattern: str, back: int = 0) -> RedactionRule:
    """A key with a fixed part inside it, `back` characters behind its start."""
    return RedactionRule(
        name, SensitiveKind.KEY, re.compile(pattern), vendor, _varied, anchors=tuple(anchors.split()), back=back
    )


VENDOR_RULES: tuple[RedactionRule, ...] = (
    _inner(
        "slack-webhook",
        "Slack",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{20,})",
    ),
    _inner(
        "discord-webhook",
        "Discord",
        "/api/webhooks/",
        r"/api/webhooks/(?P<secret>\d{16,20}/[A-Za-z0-9_-]{40,})",
    ),
    _inner(
        "teams-webhook",
        "Microsoft Teams",
        ".webhook.office.com/",
        r"\.webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,})",
    ),
    _inner(
        "azure-client-secret", "Azure (Entra ID)", "Q~", r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}", 4
    ),
    _inner("azure-storage-key", "Azure", "==", r"(?<![A-Za-z0-9+/-])[A-Za-z0-9+/]{86}==", 86),
    _inner(
        "azure-key",
        "Azure (OpenAI, DevOps, AI services)",
        "JQQJ99",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,}",
        52,
    ),
    _inner("azure-devops-token", "Azure DevOps", "AZDO", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", 76),
    _inner("azure-search-key", "Azure AI Search", "AzSe", r"(?<![A-Za-z0-9])[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6}", 42),
    _inner(
        "azure-sas",
        "Azure (shared access signature)",
        "sig=",
        r"(?<![A-Za-z0-9_])sig=(?P<secret>[A-Za-z0-9%/+_-]{40,}={0,2})",
    ),
    _inner(
        "azure-function-key",
        "Azure Functions",
        "code=",
        r"(?<![A-Za-z0-9_])code=(?P<secret>[A-Za-z0-9%/+_-]{50,}={0,2})",
    ),
    _inner(
        "google-key-id",
        "Google",
        "private_key_id",
        r"private_key_id\\?[\"']\s{0,4}:\s{0,4}\\?[\"'](?P<secret>[0-9a-f]{40})",
    ),
    RedactionRule(
        "azure-devops-old-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![A-Za-z0-9+/_-])(?=[a-z]{0,51}[0-9])[a-z0-9]{52}(?![A-Za-z0-9+/=_-])"),
        "Azure DevOps (52 characters in a text that mentions it)",
        folded_hints=("devops", "visualstudio", "vsts"),
        min_digits=1,
    ),
    _inner(
        "terraform-token",
        "Terraform Cloud",
        ".atlasv1.",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
        14,
    ),
    _inner("mailchimp-key", "Mailchimp", "-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?!\d)", 32),
    _inner("maxmind-old-key", "MaxMind", "_mmk", r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", 36),
    RedactionRule(
        "telegram-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\d.])(?:bot)?(?P<secret>\d{8,10}:A[A-Za-z0-9_-]{34})(?![A-Za-z0-9_-])"),
        "Telegram",
        hints=(":A",),
        min_digits=8,
    ),
    RedactionRule(
        "discord-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.-])[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,45}(?![\w.-])"),
        "Discord",
        _varied,
        folded_hints=("discord", "bot", "token"),
        min_digits=1,
    ),
    RedactionRule(
        "aws-secret-key",
        SensitiveKind.KEY,
        re.compile(
            r"(?<![A-Za-z0-9/+=_.-])(?=[^\s]{0,39}\d)(?=[^A-Z\s]{0,39}[A-Z])(?=[^a-z\s]{0,39}[a-z])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"
        ),
        "AWS (40 characters in a text that mentions AWS)",
        folded_hints=("aws", "akia", "asia", "s3"),
        min_digits=1,
    ),
    RedactionRule(
        "facebook-app-token",
        SensitiveKind.KEY,
        re.compile(r"(?<![\w.])\d{15,16}(?:\||%7C)[A-Za-z0-9_-]{27,40}"),
        "Facebook",
        hints=("|", "%7C"),
        min_digits=15,
    ),
    *(_prefixed(*row) for row in _PREFIXED),
)


class VendorKeys:
    """Tries the rules of all vendors, where a text has a word as long as a key that begins or is made as a key is.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: tuple[RedactionRule, ...]) -> None:
        prefixed = [rule for rule in rules if rule.name in _NAMES_OF_PREFIXED]
        self._prefixes = {
            anchor[:3]: [rule for rule in prefixed if any(one[:3] == anchor[:3] for one in rule.anchors)]
            for rule in prefixed
            for anchor in rule.anchors
        }
        self._short = {start: one for start, one in self._prefixes.items() if len(start) == 2}
        self._others = tuple(
            (rule.anchors or rule.hints, rule) for rule in rules if rule.name not in _NAMES_OF_PREFIXED
        )

    def taken(self, view: TextView) -> list[Taken]:
        """All keys in the text, in order, without overlaps."""
        words = [word for word in view.text.split() if len(word) >= _MIN_KEY_CHARS]
        if not words:
            return []
        joined = " ".join(words)
        taken: list[Taken] = []
        for rule in self._rules_for(joined):
            taken += rule.taken(view)
        return _first_of_overlapping(taken) if len(taken) > 1 else taken

    def _rules_for(self, joined: str) -> list[RedactionRule]:
        """Rules that may match in the long words."""
        rules = [rule for hints, rule in self._others if not hints or any(hint in joined for hint in hints)]
        starts = set(_STARTS.findall(joined))
        for start in starts & self._prefixes.keys():
            rules += self._prefixes[start]
        for start in {one[:2] for one in starts} & self._short.keys():
            rules += self._short[start]
        return list(dict.fromkeys(rules)) if len(rules) > 1 else rules


def _first_of_overlapping(taken: list[Taken]) -> list[Taken]:
    """Values in order; of two that overlap the one that starts first, or the longer one."""
    taken.sort(key=lambda one: (one[0], -one[1]))
    kept = taken[:1]
    for one in taken[1:]:
        if one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


_STARTS = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9]\S\S")
_NAMES_OF_PREFIXED = frozenset(row[0] for row in _PREFIXED)

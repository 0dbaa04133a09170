"""Texts with passwords and keys behind what introduces them, with telephone numbers, and with numbers of persons.

In `CREDENTIALS` the secret stands between « and », and `<an36>` stands for made-up characters (`vendor_examples`).
"""

CREDENTIALS = r"""
postgres://app:«S3cr3tPw»@db.internal:5432/prod
postgresql://app:«p%40ss%2Fword»@db/prod?sslmode=require
mysql://root:«hunter2!»@127.0.0.1/shop
mongodb+srv://svc:«Zx81-qwerty»@cluster0.abcde.mongodb.net/db
redis://:«myredispw9»@cache:6379/0
rediss://default:«<an30>»@eu1-redis.upstash.io:6379
amqp://guest:«gu3stpw»@rabbit:5672/vhost
smtp://mailer%40x.org:«Sm7pPass»@smtp.x.org:587
smtps://user:«<an16>»@smtp.sendgrid.net:465
ftp://bob:«ftppass1»@ftp.example.com/
https://user:«tok3nvalue»@git.example.com/x.git
https://«<an40>»@github.com/org/repo.git
Server=tcp:x.database.windows.net,1433;Initial Catalog=db;User ID=sa;Password=«P@ssw0rd!23»;Encrypt=True;
Data Source=ora;User Id=scott;Password=«tiger123»;
Server=localhost;Database=app;Uid=root;Pwd=«toor99»;
Driver={ODBC Driver 18};Server=x;UID=sa;PWD=«Str0ng!Pass»;
jdbc:mysql://db:3306/app?user=root&password=«hunter22»&useSSL=false
jdbc:postgresql://db/app?user=x&password=«pgpass77»
jdbc:oracle:thin:scott/«tiger9»@//db:1521/ORCL
sqlplus scott/«tiger»@orcl
sqlplus -S -L system/«Manag3r»@//db.example.com:1521/XEPDB1 @report.sql
sqlplus "sys/«0racle!»@prod as sysdba"
sqlplus scott/"«t! ger,9»"@orcl
connect hr/«hr_pw»@pdb1
rman target sys/«Rm4nPw»@catalog
expdp system/«dumpPw»@db directory=d
sqlldr userid=scott/«loaderpw»@orcl control=x.ctl
ORA-12154 while connecting scott/«tiger»@//dbhost/ORCL
dsn: app_ro/«S3cr3t.pw»@db-01.prod.internal:1521/ORCL
jdbc:sqlserver://db:1433;databaseName=a;user=sa;password=«Sql!Pass1»;
jdbc:sqlserver://db;user=sa;password={«Sql!Pass1»};
host=db port=5432 dbname=app user=app password=«libpqpw1» sslmode=require
host=db user=app password='«lib pq pw1»' dbname=x
PGPASSWORD=«pgpw1234» psql -h db
DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=«<b6486>==»;EndpointSuffix=core.windows.net
Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«<b6443>=»
HostName=x.azure-devices.net;DeviceId=d;SharedAccessKey=«<b6443>=»
AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=«<b6486>==»;
user:«pa55word»@tcp(127.0.0.1:3306)/dbname
mysql -u root -p«hunter2222» -h db shop
mysqldump --user=root --password=«dumpPw12» shop
curl -u admin:«s3cretpw» https://x.org
curl --user "bob:«hunter23»" https://x.org
sshpass -p '«sshpw123»' ssh bob@host
redis-cli -h cache -a «redispw123» ping
Authorization: Digest username="bob", realm="x", response="«<hex32>»"
sqlcmd -S srv -U sa -P «Sql!Pass2»
docker login -u bob -p «dockpw123» registry.io
snowflake://user:«SnowP4ss»@acct/db/schema?warehouse=wh
cassandra://u:«cassPw1»@h:9042/ks
clickhouse://default:«ChPw123»@ch:9000/db
neo4j+s://neo4j:«neoPw1234»@x.databases.neo4j.io
nats://user:«natsPw12»@nats:4222
elasticsearch: https://elastic:«changeme123»@es:9200
ldap://cn=admin:«ldapPw1»@ldap:389
mssql+pyodbc://sa:«Yukon900»@dsn
spring.datasource.password=«springPw1»
DB_PASSWORD: «dbpw2024!»
"password" : "«correct horse»"
password => '«phpPass1»'
<add key="Password" value="«xmlPw123»" />
<password>«mavenPw1»</password>
connectionString="Server=x;Password=«CsPw123»;"
machine api.heroku.com login a@b.co password «<hex36>»
postgres://u:«p@ss»@db.local:5432/x
postgres://u:«p/w0rd»@db.local:5432/x
Authorization: Bearer «<an40>»
authorization: bearer «<hex32>»
"Authorization": "Bearer «<an32>»"
-H 'Authorization: Bearer «<url43>»'
Authorization: Basic «dXNlcjpwYXNzMTIz»
Proxy-Authorization: Basic «dXNlcjpwYXNzMTIz»
Authorization: Token «<hex40>»
Authorization: ApiKey «<an48>==»
Authorization: «<an32>»
Authorization: AWS4-HMAC-SHA256 Credential=AKIA<up16>/20240101/us-east-1/s3/aws4_request, Signature=«<hex64>»
Authorization: SSO-Key «<an20>:<an20>»
Cookie: «sessionid=<low32>»
Cookie: «sid=<an24>; csrftoken=<an32>»
Cookie: theme=dark; «PHPSESSID=<low26>»
Set-Cookie: «sid=<an24>»; Path=/; HttpOnly
set-cookie: «__Host-session=<an40>»; Secure
"cookie": "«auth=<an30>»"
X-Api-Key: «<an32>»
x-api-key: «<hex32>»
X-Auth-Token: «<an24>»
X-Vault-Token: «<an26>»
PRIVATE-TOKEN: «<an20>»
X-Amz-Security-Token: «<an60>»
Ocp-Apim-Subscription-Key: «<hex32>»
DD-API-KEY: «<hex32>»
X-Shopify-Access-Token: «<hex32>»
X-Goog-Api-Key: «<an39>»
api-key: «<hex32>»
apikey: «<hex32>»
X-CSRF-Token: «<an43>»
curl -H "X-API-KEY: «<an30>»" https://x
https://x.org/api?api_key=«<hex32>»&x=1
https://x.org/api?access_token=«<an40>»
https://x.org/?token=«<hex24>»
https://x.s3.amazonaws.com/k?X-Amz-Signature=«<hex64>»&X-Amz-Date=1
wss://x.org/ws?auth=«<an30>»
use bearer «<an12>» please
HEROKU_API_KEY=«<hex8>-<hex4>-<hex4>-<hex4>-<hex12>»
cloudflare api token: «<url40>»
CLOUDFLARE_API_KEY: «<hex37>»
datadog api key is «<hex32>»
The Datadog application key is «<hex40>».
FASTLY_API_TOKEN="«<url32>»"
My Mistral API key: «<an32>»
COHERE_API_KEY=«<an40>»
CO_API_KEY: «<an40>»
okta token «00<url40>»
auth0 client secret: «<url64>»
AUTH0_CLIENT_SECRET=«<url64>»
twilio auth token: «<hex32>»
TWILIO_AUTH_TOKEN=«<hex32>»
postmark server token: «<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>»
algolia admin key: «<hex32>»
ALGOLIA_ADMIN_KEY = '«<hex32>»'
the airtable key is «key<an13>4»
linkedin client secret: «<an16>»
twitter api secret «<an50>»
twitter_access_token_secret: «<an45>»
facebook app secret: «<hex32>»
FB_APP_SECRET=«<hex32>»
dropbox access token = «<url64>»
discord bot token: «MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.<url27>»
discord client secret: «<url32>»
snowflake password: «Sn0w!flake»
SNOWFLAKE_PASSWORD=«Sn0wPass»
confluent api secret: «<b6464>»
pagerduty api key: «<url20>»
new relic license key: «<hex36>NRAL»
NEW_RELIC_LICENSE_KEY=«<hex36>NRAL»
sentry dsn https://«<hex32>»@o123.ingest.sentry.io/456
netlify auth token: «<url43>»
VERCEL_TOKEN=«<an24>»
jira api token: «<an24>»
confluence token is «<an24>»
asana personal access token: «1/<dig16>:<hex32>»
supabase service_role key: «eyJ<an33>.eyJ<an60>.<url43>»
doppler token «dp.pt.<an43>»
azure client secret: «<an3>8Q~<an34>»
AZURE_CLIENT_SECRET=«<an3>8Q~<an34>»
azure devops pat: «<low52>»
azure openai key: «<hex32>»
AZURE_OPENAI_API_KEY=«<hex32>»
cognitive services key1: «<hex32>»
"private_key_id": "«<hex40>»"
"client_secret": "«GOCSPX-<url28>»"
aws_secret_access_key = «<b6440>»
AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj<b64200>»
secret access key: «<b6440>»
AWS secret: «<b6440>»
travis token: «<an22>»
codecov token «<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>»
circleci token: «<hex40>»
zendesk token: «<an40>»
intercom access token «<an60>»
square access token: «EAAAE<url59>»
paypal client secret: «E<url79>»
PAYPAL_CLIENT_SECRET=«E<url79>»
rollbar post_server_item token: «<hex32>»
bugsnag api key «<hex32>»
segment write key: «<an32>»
mixpanel token «<hex32>»
amplitude api key: «<hex32>»
mapbox token pk.«eyJ<an60>.<url22>»
launchdarkly sdk key: «sdk-<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>»
LOGGLY_TOKEN: «<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>»
splunk hec token: «<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>»
elastic cloud api key: «<an40>==»
weights and biases key: «<hex40>»
WANDB_API_KEY=«<hex40>»
stability ai key: «sk-<an48>»
deepl auth key: «<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>:fx»
my password is «Tr0ub4dor&3»
passwd «hunter22!»
Passwort: «geheim123!»
contraseña: «secreto99»
pin code? password:«abc123xyz»
FLASK_SECRET_KEY='«dev-<hex20>»'
SECRET_KEY_BASE: «<hex128>»
jwt_secret: «<an32>»
ENCRYPTION_KEY=«<b6443>=»
"apiKey": "«<an32>»"
apiKey: '«<an32>»',
const token = "«<an32>";»
export GH_TOKEN=«<hex40>»
SLACK_SIGNING_SECRET=«<hex32>»
webhook secret: «whsec_<an32>»
""".strip().splitlines()

PHONES = """
Call me at +1 (415) 555-2671
tel:+14155552671
phone 415 555 2671
(415) 555-2671
415.555.2671
+1.415.555.2671
1-800-555-0199
+44 20 7946 0958
020 7946 0958
07911 123456
Mobile: 07911123456
+44 7911 123456
(020) 7946 0958
+49 30 1234567
030/1234567
0151 23456789
+49 (0)151 2345 6789
Tel. 089 1234567
Handy: 015123456789
+33 1 23 45 67 89
01 23 45 67 89
06.12.34.56.78
Tél : 0612345678
+34 612 345 678
teléfono 612 345 678
+39 06 1234 5678
cell 333 1234567
+31 6 12345678
06-12345678
+32 470 12 34 56
0470 12 34 56
+41 44 668 18 00
044 668 18 00
+43 1 234567
+46 70 123 45 67
070-123 45 67
+47 912 34 567
ring 912 34 567
+45 20 12 34 56
phone 20 12 34 56
+48 601 234 567
tel. 601 234 567
+7 (495) 123-45-67
8 (495) 123-45-67
+91 98450 83893
reach me at 98450 83893
mobile 9845083893
+86 138 0013 8000
138 0013 8000
phone: 13800138000
+81 3-1234-5678
03-1234-5678
090-1234-5678
+82 10-1234-5678
010-1234-5678
+61 412 345 678
0412 345 678
(02) 9374 4000
+55 11 91234-5678
(11) 91234-5678
+52 55 1234 5678
contact 55 1234 5678
+27 82 123 4567
082 123 4567
+90 532 123 45 67
0532 123 45 67
+972 50-123-4567
050-123-4567
+971 50 123 4567
+65 9123 4567
call 9123 4567
+234 803 123 4567
0803 123 4567
+20 10 1234 5678
0044 20 7946 0958
fax 030 1234-567
(089) 1234-567
+1-415-555-2671 ext. 123
WhatsApp +5511912345678
sms to 0612345678
phone number: (415)5552671
Telefon 030-1234567
ph 415-555-2671
0171-1234567
+353 1 234 5678
01 234 5678
+420 601 234 567
+30 21 0123 4567
+351 912 345 678
+380 44 123 4567
+62 812-3456-7890
0812-3456-7890
+63 917 123 4567
0917 123 4567
+60 12-345 6789
012-345 6789
+66 81 234 5678
081 234 5678
+84 91 234 56 78
+92 300 1234567
0300-1234567
+880 1712-345678
01712-345678
""".strip().splitlines()

PERSON_IDS = """
SSN 536-90-4399
my social is 536-90-4399
SSN: 536904399
ITIN 912-70-4399
NI number AB 12 34 56 C
NINO AB123456C
AB123456C
NHS number 943 476 5919
NHS 9434765919
2 55 08 14 168 025 38
NIR 255081416802538
Steuer-ID 86095742719
86 095 742 719
IdNr. 86 095 742 719
DNI 12345678Z
12345678-Z
NIE X1234567L
X-1234567-L
codice fiscale RSSMRA85T10A562S
RSSMRA85T10A562S
BSN 111222333
1112.22.333 is my BSN
85.07.30-033.28
PESEL 44051401359
811218-9876
personnummer 19811218-9876
personnummer 198112189876
CPR 070761-4285
15108695088
151086 95088
131052-308T
131052A308T
NIF 501964843
NIF 501 964 843
PPS 1234567T
SVNR 1237 010180
756.9217.0769.85
7103192745 rodné číslo
710319/2745
529.982.247-25
CPF 52998224725
11.222.333/0001-81
BOXW310820HNERXN09
20-26756539-3
RUT 12.531.909-2
Aadhaar 2341 2341 2346
aadhaar number is 234123412346
PAN ABCPE1234F
11010519491231002X
900101-1234568
My Number 1234 5678 9018
マイナンバー 123456789018
TFN 123 456 782
tax file number 123456782
Medicare 2123 45670 1
SIN 046 454 286
SIN: 046-454-286
8001015009087
TC kimlik no 10000000146
S1234567D
A123456(3)
Taiwan ID A123456789
1-1017-00230-70-8
Teudat Zehut 123456782
CNP 1800101221144
EGN 7523169263
OIB 33392005961
isikukood 37605030299
AMKA 01013099997
IRD 049-091-850
passport number L898902C3
Passport no. C01X00T47
Reisepass C01X00T47
Pass: passport 123456789
""".strip().splitlines()

"""Our own word lists: words that mean the same, words that exclude one another, opposites, and names of places.

A bar or the end of a line ends a set; words of a set are of one part of speech. They go before WordNet, which knows
more words and errs more.
"""

SAME = {
    "N": """
movie film|city metropolis|car automobile|buyer purchaser|vendor seller|attorney lawyer|physician doctor
author writer|kid child|start beginning|goal aim objective|area region|error mistake|picture image|cash money
firm company|corporation company|employee worker|pupil student|picture photograph|salary pay wage
illness disease|quantity amount|site location|method approach technique|outcome result
trip journey|tune melody|assistance aid help|answer reply response|gift present|shop store|holiday vacation
blaze fire|boss supervisor|customer client|choice option selection|conflict dispute|contest competition
effect impact|enemy foe|fortune wealth|friend companion|road street|growth expansion|idea concept notion
merger amalgamation|opponent rival|outline overview summary|owner proprietor|phase stage|purpose aim
rule regulation|scientist researcher|sort kind type|story tale|survey poll|talk discussion|task assignment
terrain ground|tax levy|victory win|opinion viewpoint|battle fight|creator maker|drawback disadvantage
benefit advantage|inhabitant resident|importance significance|income earnings|boundary border|variety assortment
purchase acquisition|achievement accomplishment|agreement deal|forebear ancestor|apartment flat|attack assault
gathering assembly|award prize|prohibition ban|courage bravery|structure building|graveyard cemetery
ceremony ritual|trait characteristic|confrontation clash|alliance coalition|shore coast
coworker colleague|competitor rival|grievance complaint|approval consent|reviewer critic|crowd throng
tradition custom|danger peril|reduction decrease|shortage deficiency|delegate representative
protest demonstration|wish desire|devastation destruction|catastrophe disaster|finding discovery
exhibition display|conclusion end|motor engine|surroundings environment|instance example
fan supporter|fee charge|woodland forest|liberty freedom|burial funeral|trash garbage|drawing illustration
event incident|investigation inquiry|killing murder|statute law|myth legend|merchant trader|ruler monarch
highway motorway|duty obligation|portion share|railroad railway
revolt uprising rebellion|shelter refuge|faith religion|refurbishment renovation|reporter journalist
timetable schedule|screenplay script|vessel ship|declaration statement|subject topic
triumph success|summit peak|lorry truck|ruling verdict|riches wealth|labourer worker|aim intention
anthology collection|committee panel
conference convention|crash accident|debut premiere|disagreement dispute|drug medicine
duration length|emblem symbol|expert specialist|famine hunger|garment clothing|hamlet village|hint clue
infant baby|lawyer attorney|manufacturer maker|nation country|outskirts suburbs
performer entertainer|playwright dramatist|prisoner inmate|proposal suggestion|rain rainfall|scarcity shortage
soldier troop|spouse partner|stadium arena|strike walkout|target objective|tenant renter|threat menace
tournament competition|tribute homage|vow promise
""",
    "V": """
begin start commence|end finish conclude|buy purchase|assist help aid|build construct|obtain acquire
demonstrate show|require necessitate|try attempt|permit allow|choose select pick|retain keep|reside live
perish die|rise climb|engage hire|say state declare|happen occur|appear emerge|create devise|establish found
portray depict|ensure guarantee|provide supply offer|reveal disclose|gather collect|halt stop|seek pursue
improve enhance|damage harm|decrease lessen reduce|defeat beat|destroy demolish|discuss debate|earn gain
examine inspect|explain clarify|govern rule|inform notify|modify alter|own possess|postpone delay
acquit exonerate|rename retitle|renovate restore|replace supersede|resign quit|respond reply answer
ship transport|speak talk|suggest propose|supervise oversee|teach instruct|tell inform|vanish disappear
wed marry|contain include|connect link|combine merge|broaden widen expand|evaluate assess|boost bolster
argue contend|ban prohibit|believe think|broadcast air|capture seize|celebrate commemorate|conceal hide
convince persuade|defend protect|detect spot|encounter face|endorse back|escape flee|expel eject
predict forecast|fund finance|gather assemble|grant award|injure hurt|impose levy
inspire motivate|investigate probe|maintain keep|mock ridicule|organize arrange|oversee supervise|praise laud
preserve conserve|prevent stop|protect safeguard|recall remember|reject refuse|remain stay
remove eliminate|repair fix|restrict limit|revise amend|frighten scare|seem appear|yell shout
solve resolve|strengthen reinforce|encircle surround|threaten menace|transform convert|comprehend understand
unite unify|verify confirm|accumulate amass|assassinate murder|compete vie|construct erect
contaminate pollute|cure heal|decorate adorn|dispatch send|enlarge expand|entitle title
halt cease|imprison jail|interrogate question|invade attack|lessen reduce
murmur mutter|postpone defer|ratify approve|recover regain
relocate move|reside dwell|reward award|seize grab|slay kill|sponsor fund|tutor teach
""",
    "J": """
big large|huge enormous vast|small tiny|famous renowned noted well-known|quick fast rapid|rich wealthy
important significant|major key main|chief main principal|entire whole|annual yearly|difficult hard|easy simple
sick ill|correct accurate|crucial vital critical|current present|dangerous hazardous|deadly lethal fatal
distinct separate|diverse varied|essential vital|former previous|frequent common|global worldwide international
infamous notorious|joint shared|nearby neighbouring|necessary required|noteworthy notable
notable remarkable|particular specific|popular well-liked|powerful strong|primary main|prior previous
rare uncommon|similar alike|strange odd|sufficient adequate enough|talented gifted|typical usual
uncertain unsure|urgent pressing|western occidental|beautiful lovely|brave courageous|brief short|broad wide
cheap inexpensive|obvious evident clear|complex complicated|costly expensive|decisive conclusive
detailed thorough|eager keen|equal equivalent|exact precise|excellent outstanding|fortunate lucky|gigantic giant
harmful damaging|illegal unlawful|immediate instant|intelligent clever smart|legal lawful|loyal faithful
massive enormous|modern contemporary|obsolete outdated|poor impoverished|quiet silent|random arbitrary
reliable dependable|rigid stiff|circular round|scarce rare|severe harsh|sole only|sturdy robust|sudden abrupt
suitable appropriate|unexpected surprising|grateful thankful|weary tired|unusual uncommon|usual customary
precious valuable|affluent wealthy|feeble weak|incorrect wrong|ample plentiful|annual yearly
adjacent neighbouring|crucial key|fictional imaginary|hidden concealed|nationwide national
prestigious esteemed|seasoned experienced|vacant empty|wooded forested
""",
    "R": """
approximately about roughly around|nearly almost|mainly mostly chiefly primarily|originally initially
usually typically|generally|often frequently|rapidly quickly|currently presently|formerly previously
finally eventually|solely only|particularly especially|completely entirely fully|slightly somewhat
later subsequently|jointly together|annually yearly
""",
}
"""A set means the same in the way that news and reference texts use it."""

APART = {
    "N": """
actor director producer writer editor composer painter singer dancer comedian musician sculptor photographer architect
lawyer doctor nurse engineer teacher farmer soldier priest chemist physicist biologist mathematician economist historian
politician businessman journalist athlete philosopher poet novelist journalist|king queen prince duke emperor
footballer swimmer boxer wrestler cyclist sprinter golfer
president senator governor mayor ambassador minister judge|general colonel captain sergeant lieutenant admiral
film album novel play song opera book magazine newspaper|television radio theatre
river lake mountain island valley desert peninsula|city county village province country state|district
university museum hospital school library church airport stadium hotel restaurant prison factory bank
company charity union party club team band|brother sister cousin uncle aunt nephew niece
father mother son daughter|husband wife|grandfather grandmother
guitarist drummer bassist pianist violinist saxophonist|guitar piano drum violin|trumpet flute cello
football basketball baseball hockey tennis cricket rugby golf volleyball|physics chemistry biology
mathematics history economics philosophy geology law medicine
comedy drama thriller horror romance documentary western|dog cat horse cow sheep pig goat rabbit
lion tiger bear wolf elephant monkey|eagle owl hawk duck|apple banana grape|peach cherry|wheat rice corn barley
gold silver copper iron zinc|coal oil gas|beer wine whisky vodka|tea coffee milk
car train plane ship bus truck bicycle|knife gun sword bow|summer winter spring autumn
morning evening afternoon night|heart lung liver kidney brain|arm leg hand foot head|door window roof floor wall
north south east west|second minute hour day week month year decade century|dollar euro pound yen
mile kilometre inch metre foot|red blue|earthquake flood hurricane fire|army navy|battle election strike trial
trilogy duology|gene protein enzyme|bacterium virus fungus|customer supplier|buyer seller|employer employee
loan bond share|asset liability|revenue expense|profit loss|landlord tenant|teacher student|host guest
chairman treasurer|secretary|author publisher illustrator translator|winner loser|plaintiff defendant
import export|childhood adulthood|discount refund surcharge|email letter fax|laptop tablet smartphone
kitchen bathroom bedroom garage|breakfast lunch dinner|jacket shirt shoe hat|wedding funeral birthday
marketing engineering accounting|server printer router|password username|folder file|column row|keyboard mouse
cancer diabetes malaria tuberculosis|headache fever cough|agriculture mining tourism|bridge tunnel
road railway canal|castle palace cathedral|knee elbow shoulder ankle|goal assist touchdown|coach referee
quarterback linebacker goalkeeper striker defender midfielder|opera ballet musical|poem essay|prize fine
tooth nail|temperature pressure humidity volume|length width height weight depth|cell tissue organ
infection injury allergy|vaccine antibiotic|planet star moon comet asteroid galaxy
oxygen nitrogen hydrogen carbon|cotton wool silk|semifinal quarterfinal|murder theft fraud assault arson
divorce marriage|debut farewell|sequel prequel remake|mortgage pension|insurance mortgage|salary rent
investor borrower|lender borrower|passport visa|tiger shark|insect reptile|mammal bird|rainfall snowfall
iphone android|spokesman lawyer|detective thief|vampire witch ghost|host guest contestant|episode season
verse chorus|album single|paragraph chapter|tenant landlord|suburb village|peasant merchant noble
monastery mosque synagogue|currency language|religion language|capital port|border coast|harbour bridge
""",
    "V": """
direct produce write edit|found leave|sing dance|hire fire|sue pay|love hate|kill rescue|buy rent|teach study
swim run|invent copy|borrow steal|elect dismiss|praise criticize|launch cancel|publish censor
attack defend|import export|build demolish|play coach|donate sell|discover forget|broadcast ban
""",
    "J": """
american british french german italian spanish russian chinese japanese indian australian canadian mexican brazilian
swedish norwegian danish dutch polish greek turkish irish scottish korean egyptian|english french german spanish
catholic protestant muslim jewish buddhist hindu|democratic republican liberal conservative|northern southern
eastern western|red blue green yellow white black orange purple brown grey|roman greek|medieval modern
military civilian|federal local|electric mechanical|wooden metal|animated silent|solo joint|nuclear solar
professional amateur|classical folk jazz|primary secondary|married divorced|annual monthly weekly daily
urban rural|romantic horror|independent state-owned|live recorded|marine terrestrial
""",
}
"""Two words of a set cannot both be right of the same thing in the same place of a sentence."""

OPPOSITE = {
    "N": """
increase decrease|rise fall|victory defeat|success failure|beginning end|majority minority
advantage disadvantage|war peace|top bottom|maximum minimum|strength weakness|arrival departure|birth death
gain loss|presence absence|acceptance rejection|supporter opponent|growth decline|winner loser|friend enemy
surplus deficit|entrance exit|improvement deterioration|asset liability|ally enemy|acquittal conviction
ascent descent|expansion contraction
""",
    "V": """
increase decrease|rise fall|grow shrink|win lose|begin end|start stop|open close|accept reject|support oppose
buy sell|arrive leave|enter leave|raise lower|allow forbid|permit prohibit|approve reject|succeed fail|gain lose
expand shrink|improve worsen|include exclude|join leave|attack defend|agree disagree|confirm deny
strengthen weaken|add remove|create destroy|hire dismiss|remember forget|encourage discourage|enable disable
attract repel|accelerate slow|appear disappear|retain lose|pass fail|precede follow|lead follow|export import
lend borrow|activate inhibit|stimulate suppress|induce prevent|marry divorce|merge separate|acquire sell
reduce increase|decline rise|drop rise|exceed undershoot|encode decode|promote demote|upgrade downgrade
unite divide|inherit bequeath
""",
    "J": """
large small|big small|high low|long short|old young|new old|early late|good bad|better worse|best worst
strong weak|rich poor|hot cold|warm cool|fast slow|heavy light|deep shallow|wide narrow|full empty|major minor
public private|male female|upper lower|higher lower|larger smaller|longer shorter|older younger|oldest youngest
largest smallest|highest lowest|longest shortest|biggest smallest|newest oldest|earliest latest|greater lesser
stronger weaker|taller shorter|richer poorer|faster slower|easier harder|positive negative|northern southern
eastern western|northernmost southernmost|easternmost westernmost|legal illegal|possible impossible
successful unsuccessful|active inactive|popular unpopular|able unable|common rare|safe dangerous
permanent temporary|domestic foreign|internal external|direct indirect|domestic international|pro anti
present absent|dead alive|former current|known unknown|married unmarried|present past|partial complete
guilty innocent|wild tame|single double|married single|primary secondary|rural urban|healthy sick|native foreign
voluntary compulsory|significant insignificant|favorable unfavorable|lower upper|expensive cheap
official unofficial|visible invisible|dry wet|modern ancient
""",
    "R": """
always never|often rarely|usually rarely|inside outside|earlier later|frequently seldom|quickly slowly
partially completely|fully partly|positively negatively|successfully unsuccessfully|permanently temporarily
directly indirectly|publicly privately|upward downward|significantly slightly|internally externally|north south
east west|northeast southwest|northwest southeast
""",
}
"""Pairs of opposites."""

COUNTRIES = """
France|Germany|Italy|Spain|Portugal|Russia|China|Japan|India|Australia|Canada|Mexico|Brazil|Argentina|Chile|Peru
Sweden|Norway|Denmark|Finland|Poland|Austria|Hungary|Greece|Turkey|Ireland|Scotland|Wales|England|Egypt|Nigeria
Kenya|Ethiopia|South Africa|Morocco|Israel|Iran|Iraq|Pakistan|Bangladesh|Thailand|Vietnam|Indonesia|Malaysia
Philippines|New Zealand|Belgium|Switzerland|Ukraine|Romania|Bulgaria|Cuba|Colombia|Venezuela|Ghana|Uganda|Sudan
Nepal|Sri Lanka|Iceland
"""
CITIES = """
London|Paris|Berlin|Rome|Madrid|Vienna|Moscow|Tokyo|Beijing|Sydney|Melbourne|Toronto|Montreal|Chicago|Boston
Dallas|Houston|Seattle|Denver|Atlanta|Miami|Detroit|Philadelphia|San Francisco|Los Angeles|New York City
New Orleans|Manchester|Liverpool|Birmingham|Glasgow|Edinburgh|Dublin|Amsterdam|Brussels|Copenhagen|Stockholm
Oslo|Helsinki|Warsaw|Prague|Budapest|Athens|Istanbul|Cairo|Mumbai|Delhi|Shanghai|Seoul|Bangkok|Singapore|Lisbon
Munich|Hamburg|Milan|Barcelona
"""
STATES = """
California|Texas|Florida|Ohio|Illinois|Pennsylvania|Michigan|Virginia|North Carolina|South Carolina
Massachusetts|Indiana|Arizona|Tennessee|Missouri|Maryland|Wisconsin|Minnesota|Colorado|Alabama|Louisiana
Kentucky|Oregon|Oklahoma|Connecticut|Iowa|Mississippi|Arkansas|Kansas|Utah|Nevada|New Mexico|West Virginia
Nebraska|Idaho|Maine|New Hampshire|Montana|Delaware|South Dakota|North Dakota|Alaska|Vermont|Wyoming|Hawaii
Rhode Island|New Jersey
"""
GIVEN = """
James John Robert Michael William David Richard Joseph Thomas Charles Christopher Daniel Matthew Anthony Mark Donald
Steven Paul Andrew Joshua Kenneth Kevin Brian George Edward Ronald Timothy Jason Jeffrey Ryan Jacob Gary Nicholas Eric
Jonathan Stephen Larry Justin Scott Brandon Benjamin Samuel Gregory Frank Alexander Raymond Patrick Jack Dennis Jerry
Peter Henry Carl Arthur Albert Walter Harold Roger Ralph Lawrence Louis Philip Johnny Bobby Howard Fred Martin Ernest
Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Nancy Lisa Betty Margaret Sandra Ashley
Kimberly Emily Donna Michelle Carol Amanda Dorothy Melissa Deborah Stephanie Rebecca Laura Sharon Cynthia Kathleen Amy
Angela Shirley Anna Ruth Brenda Pamela Nicole Catherine Christine Helen Alice Julia Jane Marie Rose Ann Anne Judy Emma
Hugh Simon Adam Alan Ian Neil Keith Tony Steve Mike Jim Tom Bob Bill Joe Sam Ben Dave Chris Nick Matt Dan Max Leo Oscar
Johann Hans Karl Wolfgang Ludwig Pierre Jean Marcel Giovanni Antonio Carlos Juan Luis Miguel Pablo Ivan Boris Vladimir
"""

MISLED = """
N: person someone individual state province group grouping year minister rest command plant building fly component
element request m component inch center range mode style fashion majority assistance product feature topic journal
television technology engineering revenue injury district territory agency adult increase usage fall play drama
document intent percentage battle engagement behavior cm respect existence girl miss resident vote standard attack
partner wage threat chance hall doctrine commission committee militia one globe earth min exercise measurement load
penalty second mind boundary confidence defeat authority finding perturbation slope oxygen finish manner vicinity
forest dozen news honor maintenance license bullet l ml cc kind sort fellow hundred alarm complaint comment lobby
minor pound creator speed green plane spell criminal decree help cell key island ground side bank border insulin ice
coast passenger satellite substrate arm recording turkey glass orbit shell bacteria cabinet seed hardware edge turn
interior shelter banner mortal process program plan use result effect concept nation december consumption complex
tube slope study survey director manager job career occupation hour lack settlement colony detection user region
station member product woman man material
V: help go use say ask want associate live detect save publish print view regard prevent focus result complete
finish derive put place lay fly install assume jump please force enjoy exclude inhibit suppress teach recover imply
approve challenge limit rotate attribute classify conclude repair number concern resign dismiss review honor prompt
stagger race approach seize speculate hide emphasize supply provide secure derive conquer travel adopt estimate
study attempt tend exceed incorporate number compete encompass mention determine promote start begin state act stand
claim let know synthesize fill attach enforce invest devote integrate surround border reveal
J: single little final comic extra older notable plain apparent mobile green super flat remarkable fundamental
everyday main small large big fourth sixth eleventh fifteen seventeen permanent earlier earliest mixed ex short-term
prominent other used many born same different available specific few likely independent financial free real like due
sure much whole basic alert conventional current related separate nuclear subsequent theoretical residential
vertical crucial
R: up down well later away simply only very but soon however completely largely earlier poorly slowly easily
approximately partially partly equally consistently certainly subsequently there here still typically alone fairly
forever
"""
"""Words whose first sense in WordNet is not what they mean in our texts, or whose neighbours there are rare or odd."""

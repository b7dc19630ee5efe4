#!/usr/bin/env python3
"""Write the training text of hone-tiny: small children's stories from a grammar.

The grammar and every word of it were written for this project (MIT licence,
like the rest of it); nothing is downloaded.  The output depends only on
--seed and --chars: the same settings give the same bytes.

    python3 make_corpus.py corpus.txt
    python3 make_corpus.py --jsonl corpus.jsonl

Stories are separated by one line holding only "<|endoftext|>"; with --jsonl
each is one line, {"text": ...}, as `hone train` reads them.

How the grammar is written
  [x|y|z]     one of the alternatives (may be nested, may be empty)
  x || y      whole-line alternatives
  <name>      one of the entries of LEX["name"], expanded in the same story
  {a} {b} {h} hero, friend, helper; {a.he} {a.his} {a.him} {a.himself} {a.the}
  {p}         a grown-up of the hero's family ("mother"); {o} an object
  {pl}        a place; {pl.in} "in the park"
  $u,v=x;y|p;q   choose one row and keep it as {u}, {v} for the whole story
  ?line       an optional sentence;  a line ">" begins a new paragraph
The writer mends "a"/"an" and the capitals at the starts of sentences.
"""
import argparse
import json
import random
import re

# ---------------------------------------------------------------- people

GIRLS = ("Lily Mia Anna Rosa Emma Nora Ella Zoe Lucy Maya Clara Ruby Ivy Tara Hana Amina Elsa "
         "Sofia Daisy Molly Greta Leila Poppy June Alice").split()
BOYS = ("Tom Ben Sam Max Leo Finn Jack Omar Hugo Tim Noah Oscar Eli Theo Adam Kofi Ravi Luca "
        "Peter Milo Felix Henry Otto Toby Jacob").split()
ANIMAL_F = ("Hazel Clover Willow Fern Olive Dot Maple Juniper Minty Pearl Bluebell Tansy Honey "
            "Ginger Penny Mabel Plum Misty").split()
ANIMAL_M = ("Pip Bramble Biscuit Bruno Tully Rusty Barnaby Button Acorn Teddy Pepper Oakley "
            "Monty Basil Chester Rufus Alfie Dusty").split()

KINDS = {  # kind: home
    "rabbit": "burrow", "fox": "den", "bear": "cave", "mouse": "hole", "hedgehog": "nest",
    "squirrel": "hollow tree", "badger": "burrow", "otter": "house", "mole": "tunnel",
    "beaver": "lodge", "duck": "nest", "raccoon": "hollow log", "pig": "barn",
    "goat": "shed", "kitten": "basket", "puppy": "kennel", "deer": "glade",
}
RELATIVES = [("mother", "f"), ("father", "m"), ("grandmother", "f"), ("grandfather", "m"),
             ("mother", "f"), ("father", "m"), ("aunt", "f"), ("uncle", "m")]

HELPERS_H = [("Mrs. Bell", "the baker", "f"), ("Mr. Reed", "the gardener", "m"),
             ("Mrs. Stone", "the old neighbour", "f"), ("Mr. Hill", "the farmer", "m"),
             ("Miss Green", "the teacher", "f"), ("Mr. Marsh", "the fisherman", "m"),
             ("Mrs. Wood", "the shopkeeper", "f"), ("Mr. Frost", "the postman", "m"),
             ("Miss Page", "the librarian", "f"), ("Mr. Smith", "the carpenter", "m"),
             ("Mrs. Lake", "the doctor", "f"), ("Mr. Carter", "the bus driver", "m")]
HELPERS_A = [("Old Owl", "the owl", "m"), ("Grandma Turtle", "the turtle", "f"),
             ("Mrs. Crow", "the crow", "f"), ("Mr. Toad", "the toad", "m"),
             ("Auntie Goose", "the goose", "f"), ("Mr. Stork", "the stork", "m"),
             ("Mrs. Heron", "the heron", "f"), ("Old Stag", "the stag", "m"),
             ("Madam Robin", "the robin", "f"), ("Mr. Snail", "the snail", "m")]

PRON = {"f": dict(he="she", him="her", his="her", himself="herself", hers="hers"),
        "m": dict(he="he", him="him", his="his", himself="himself", hers="his")}

PLACES_H = [("in", "the park"), ("in", "the garden"), ("on", "the beach"), ("at", "the market"),
            ("in", "the village square"), ("by", "the old mill"), ("on", "the hill"), ("by", "the river"),
            ("in", "the woods"), ("on", "the farm"), ("by", "the harbour"), ("in", "the orchard"),
            ("by", "the lake"), ("in", "the meadow"), ("in", "the school yard")]
PLACES_A = [("in", "the meadow"), ("in", "the forest"), ("by", "the pond"), ("under", "the old oak tree"),
            ("by", "the stream"), ("on", "the hill"), ("by", "the blackberry bushes"), ("in", "the clearing"),
            ("by", "the mossy rocks"), ("on", "the river bank"), ("under", "the willow tree"),
            ("in", "the valley"), ("by", "the waterfall")]

COLOURS = "red blue green yellow orange purple white silver golden brown pink".split()
OBJECTS = [  # noun, what one does with it (base form), past form, hearing/seeing words
    ("kite", "fly it in the wind", "flew it in the wind"),
    ("ball", "bounce it on the path", "bounced it on the path"),
    ("drum", "play it after lunch", "played it after lunch"),
    ("toy boat", "sail it on the water", "sailed it on the water"),
    ("hat", "wear it in the sun", "wore it in the sun"),
    ("scarf", "wrap it around {a.his} neck", "wrapped it around {a.his} neck"),
    ("lantern", "light it in the evening", "lit it in the evening"),
    ("bell", "ring it in the morning", "rang it in the morning"),
    ("book", "read it under a tree", "read it under a tree"),
    ("whistle", "blow it very loudly", "blew it very loudly"),
    ("basket", "fill it with berries", "filled it with berries"),
    ("umbrella", "open it in the rain", "opened it in the rain"),
    ("flute", "play sweet songs on it", "played sweet songs on it"),
    ("spinning top", "spin it on the floor", "spun it on the floor"),
    ("blanket", "sleep under it at night", "slept under it at night"),
    ("toy train", "push it along the floor", "pushed it along the floor"),
    ("marble", "roll it down the hill", "rolled it down the hill"),
    ("doll", "tell stories to it", "told stories to it"),
    ("paintbrush", "paint pictures with it", "painted pictures with it"),
    ("music box", "listen to it before bed", "listened to it before bed"),
]
FOODS = ["apple pie", "honey cake", "fresh bread", "oat cookies", "pancakes", "roasted nuts", "carrot cake",
         "cherry tart", "cheese rolls", "plum cake", "nut bread", "berry muffins", "sweet buns", "baked apples",
         "ginger biscuits"]

# ---------------------------------------------------------------- phrases

LEX = {
    "happy": "happy|glad|delighted|full of joy|cheerful|very happy|so happy|pleased",
    "sad": "sad|unhappy|upset|very sad|gloomy|close to tears",
    "scared": "afraid|scared|frightened|a little afraid|very scared|worried",
    "angry": "angry|cross|very cross|annoyed",
    "tired": "tired|sleepy|worn out|very tired",
    "little": "little|small|young|tiny|little|little",
    "trait": "kind|shy|brave|curious|cheerful|gentle|clever|quiet|friendly|playful|careful|lively|thoughtful|bright|merry",
    "big": "big|large|great|huge|enormous",
    "old": "old|very old|ancient|dusty old",
    "said": "said",
    "cried": "cried|cried|shouted|exclaimed",
    "whispered": "whispered|whispered|murmured|said",
    "asked": "asked",
    "quickly": "quickly|at once|right away|as fast as {a.he} could|without waiting",
    "smiled": "smiled|laughed|grinned|giggled|beamed",
    "softly": "softly|gently|quietly|slowly|kindly",
    "then": "then|after that|a little later|soon|a moment later|next",
    "sunny": "the sun was shining|the sky was [clear and blue|as blue as a cornflower]|a [warm|gentle] breeze was blowing|birds were singing in the trees|the air smelled of [fresh grass|flowers|hay]|not a cloud was in the sky|the sunlight was soft and golden",
    "cold": "snow lay on the ground|the wind was cold|frost covered the windows|the sky was [grey|white|pale]|the pond was frozen|big snowflakes were falling",
    "rainy": "rain was tapping on the roof|the clouds were dark and low|the wind shook the trees|puddles shone on the path|mist lay over the fields",
    "autumn": "the leaves were [red and gold|turning yellow]|a cool wind was blowing|leaves danced in the wind|the air smelled of [apples|smoke|wet leaves]",
    "weatherclause": "{wx}",
    "day": "day|morning|afternoon",
    "treat": "{food}|a cup of [warm milk|hot cocoa|sweet tea]|a big slice of cake|some {food}|a bowl of hot soup",
    "hug": "gave {a.him} a [big|warm|long] hug|hugged {a.him} [tightly|warmly]|put an arm around {a.him}|held {a.him} close",
    "like": "[loved|liked] to [sing|dance|draw|climb trees|look at the clouds|pick flowers|tell stories|collect [smooth stones|leaves|feathers|shells]|play [hide and seek|in the grass]|run|listen to the birds|splash in puddles|count the stars|help {a.his} {p}|make things with {a.his} [paws|hands]]",
    # ------------------------------------------------ openings
    "open": "<open1>|<open1>|<open2>",
    "open1": "once upon a time, there was a [<little>|<trait>|<little>|<trait>] {a.kind} named {a}."
             "|once upon a time, a <trait> {a.kind} named {a} lived {livein}."
             "|once upon a time, [{livein}, |]there lived a <little> {a.kind} [named|called] {a}."
             "|there once was a <trait> {a.kind} [named|called] {a}."
             "|there was a <little> {a.kind} named {a} who lived {livein}."
             "|long ago, a <little> {a.kind} called {a} lived {livein}."
             "|{livein}, there lived a <trait> {a.kind} named {a}."
             "|{a} was a <trait> {a.kind} who lived {livein}."
             "|{a} was a <little> {a.kind} with [bright eyes|a big heart|a soft voice|many dreams|a warm smile]."
             "|a <little> {a.kind} named {a} lived {livein} with {a.his} {p}.",
    "open1b": "{a} <like>.|{a.he} was [always |]<trait> and <like>.|every day, {a.he} <likeshort>."
              "|everyone said that {a} was the [most <trait>] {a.kind} [in the whole [village|valley|land]|they knew]."
              "|{a.he} lived with {a.his} {p} in a [cosy|small|warm|tidy] {home}."
              "|more than anything, {a} loved to [play|explore|learn new things|be outside|help others]."
              "|{a.his} best friend was a {b.kind} named {b}, and they [did everything together|played together every day|were never apart for long]."
              "|{a} and {a.his} friend {b} [played together every day|loved to play {pl.in}].",
    "likeshort": "[played {pl.in}|walked to {pl}|helped {a.his} {p}|went out to look at the world|sang a little song]",
    "open2": "one [sunny|bright|fine|quiet|fresh] <day>, a <little> {a.kind} named {a} [went|walked|ran|skipped] to {pl}."
             "|one <day>, a <trait> {a.kind} named {a} was [playing|walking|sitting|resting] {pl.in}."
             "|one <day>, {a} the {a.kind} woke up early [and looked out|and jumped out of bed|and stretched]."
             "|one <day>, when {wx}, a <little> {a.kind} named {a} went out to play."
             "|it was a [fine|lovely|quiet|beautiful] <day>, and {wx}."
             " [{a}, a <trait> {a.kind}, was in a good mood.|{a} the {a.kind} could not wait to go outside.|a <little> {a.kind} named {a} sat {pl.in}.]"
             "|one [spring|summer] <day>, {a} and {b} met {pl.in}. {a} was a <trait> {a.kind}, and {b} was a <trait> {b.kind}."
             "|early one morning, a {a.kind} named {a} went to {pl} with {a.his} {p}."
             "|every <day>, a <little> {a.kind} named {a} went to {pl}.",
    "oneday": "one <day>, [{wx}, and |]|one <day>, |one [bright|cool|quiet|fine] <day>, |one <day>, when {wx}, |then, one <day>, |on a [lovely|fine|quiet|windy] <day>, |one day, |one day, ",
    "thatday": "that day, |that day, |then |",
    "wxline": "{wx}, and [everything felt fresh|it was a good day to be outside|the whole world seemed awake|{a} felt <happy>].|[that day|that morning], {wx}.",
    # ------------------------------------------------ feelings
    "feelsad": "{a} felt <sad>.|a tear [rolled|ran] down {a}'s [cheek|nose|face].|{a} [sat down|stood still] and began to cry.|{a}'s heart felt [heavy|as heavy as a stone].|{a} hung {a.his} head.|{a} wanted to cry.|{a}'s lip began to shake.",
    "feelhappy": "{a} felt <happy>.|{a} [jumped|danced|hopped] for joy.|{a}'s heart felt [light|warm].|{a} could not stop smiling.|{a} [clapped|cheered] and laughed.|{a} had never been so happy.|{a}'s eyes [shone|sparkled] with joy.",
    "feelscared": "{a} was <scared>.|{a}'s heart beat [fast|like a drum].|{a}'s knees shook.|{a} held {a.his} breath.|{a} felt very small.|a shiver ran down {a}'s back.",
    "think": "{a} thought [and thought|hard|for a long time|for a while].|{a} sat down to think.|{a} scratched {a.his} head and thought.|for a moment, {a} did not know what to do.",
    "idea": "then {a} had an idea.|suddenly, {a} had [a good|a clever|a wonderful] idea.|at last, an idea came to {a}.|\"I know what to do!\" <cried> {a}.",
    "dontworry": "\"do not worry,\" <said> {X}. \"[we will|we can] [find a way|fix this|solve this] together.\"|\"do not be [sad|afraid],\" <said> {X}. \"I will help you.\"|\"dry your eyes,\" <said> {X}. \"there is always a way.\"|\"it will be all right,\" <said> {X}.|\"come now,\" <said> {X}. \"two heads are better than one.\"",
    "whatswrong": "\"what is wrong?\" <asked> {X}.|\"why are you [crying|so sad]?\" <asked> {X}.|\"you look [sad|worried], {a}. what happened?\" <asked> {X}.|\"what is the matter, {a}?\" <asked> {X}.|\"oh dear, what has happened?\" <asked> {X}.",
    "thank": "\"thank you[ so much|]!\" <said> {a}.|\"thank you, {X}! you are [very kind|a true friend|so good to me],\" <said> {a}.|\"oh, thank you!\" <cried> {a}[ with a big smile|].|{a} thanked {X} [again and again|with all {a.his} heart|many times].",
    "welcome": "\"you are welcome,\" <said> {X}[ with a smile|].|\"that is what friends are for,\" <said> {X}.|{X} [smiled|nodded] kindly.|\"I was glad to help,\" <said> {X}.",
    "sorry": "\"I am [so |very |]sorry,\" <whispered> {a}.|\"I am sorry. I [should not have done that|was wrong|did not think],\" <said> {a}.|\"please forgive me,\" <said> {a}. \"I am sorry.\"|{a} looked at the ground. \"I am sorry,\" {a.he} said.",
    # ------------------------------------------------ endings
    "end": "<end1>|<end1>|<end1> <end2>|<end2>",
    "end1": "that [night|evening], {a} [fell asleep|went to bed|slept] with a smile on {a.his} face."
            "|when the stars came out, {a} [lay in bed and thought about the day|told {a.his} {p} all about it]."
            "|{a} and {b} walked home [together|side by side|hand in hand] as the sun went down."
            "|the sun went down, and everyone went home happy."
            "|that evening, they ate {food} and [laughed|talked] until it was time for bed."
            "|at home, {a.his} {p} made {food}, and supper tasted better than ever."
            "|{a} ran home to tell {a.his} {p} the whole story."
            "|and from then on, {a} and {b} were the best of friends."
            "|when {a} came home, {a.his} {p} <hug>."
            "|before {a.he} went to sleep, {a} looked at the moon and whispered, \"[good night, moon|what a good day]\"."
            "|it had been a [long|wonderful|good|busy] day, and {a} was [tired|sleepy] but happy.",
    "end2": "it was a day that {a} [never forgot|would always remember].|and they all lived happily [ever after|for many years].|from that day on, {a} was a little [wiser|braver|kinder].|and that is the end of the story of {a} the {a.kind}.|everyone agreed that it had been a [wonderful|very good] day.|{a} never forgot that day.",
    "learned": "{a} learned that {m}.|that day, {a} learned that {m}.|{a} now knew that {m}.|\"now I know that {m},\" said {a}.|and so {a} learned that {m}.|\"always remember,\" said {a.his} {p}, \"that {m}.\"",
    "morals_share": "good things are better when they are shared|sharing makes everyone happy|a small gift can bring great joy|there is always enough when friends share",
    "morals_honest": "it is best to tell the truth|the truth is always better than a lie|being honest takes courage|a true word is worth more than gold",
    "morals_try": "practice makes things easier|one must never give up too soon|every big thing starts with a small step|it is all right to make mistakes",
    "morals_brave": "being brave means trying even when you are afraid|small ones can be brave too|fear grows smaller when you face it|a friend can make any fear smaller",
    "morals_kind": "kindness always finds its way back|a kind deed is never too small|helping others is the best feeling of all|a kind heart is the best treasure",
    "morals_friend": "a good friend is worth more than any toy|friends can say sorry and start again|a friend is the best thing to have|friends help each other",
    "morals_listen": "it is wise to listen to those who care for you|rules can keep us safe|it is good to stop and think first|a warning is a kind of gift",
    "morals_patient": "good things take time|patience is worth the wait|a little care every day does great things|slow and steady work brings good things",
    "morals_team": "many hands make light work|together they could do great things|working together makes hard things easy|everyone has something to give",
    "morals_own": "it is best to be yourself|everyone is good at something|being different is a gift|nobody has to be good at everything",
}

# ---------------------------------------------------------------- plots
# header: name | worlds (h = children, a = animals) | weather or * | morals
PLOTS = r"""
# lost_object | ha | * | morals_kind
{a} had a {o.full} that {a.he} loved very much. || {a.his} favourite thing in the world was a {o.full}. || {a.his} {p} had given {a.him} a {o.full}.
every day, {a.he} {o.past}. || {a.he} liked to {o.use}. || {a} took the {o} everywhere {a.he} went.
>
<oneday>{a} [looked for|wanted to play with|reached for] the {o}, but it was gone. || <oneday>the {o} was not in its place. || <oneday>{a} came home and saw that the {o} was missing.
<feelsad>
"where is my {o}?" <cried> {a}. || "oh no! I have lost my {o}!" <cried> {a}. || "I must find my {o}," <said> {a}.
$s1,s2=under the bed;behind the door|under the table;in the big box|in the basket;under the old chair|behind the fence;under a pile of leaves|under the bushes;behind the big rock
{a.he} looked {s1}. {a.he} looked {s2}. but the {o} was not there. || first {a.he} looked {s1}, and then {a.he} looked {s2}, but {a.he} found nothing. || {a.he} searched {s1} and {s2}, but there was no {o}.
?{a} sat down and sighed. || {a} almost gave up.
>
$X={h}|{b}
just then, {X} came by. || then {X} came along [the path|the road]. || {X} heard {a} and came [over|closer].
<whatswrong>
"I have lost my {o}, and I cannot find it anywhere," <said> {a}. || "my {o} is gone," <said> {a}. "I have looked everywhere."
"when did you last see it?" <asked> {X}. || "let us think," <said> {X}. "where did you play with it last?" || <dontworry> "where were you yesterday?"
{a} [thought for a moment|closed {a.his} eyes and thought]. "I was {pl.in}!" {a.he} said. || "yesterday I played {pl.in}," <said> {a}.
so they went to {pl} together. || they hurried to {pl}. || {a} and {X} walked to {pl} and looked [around|carefully].
>
$spot=in the tall grass|behind a tree|under a bench of stone|next to a big rock|on a low branch|beside a puddle|between two roots
there, {spot}, was the {o}! || and there it was! the {o} was lying {spot}. || "look!" <cried> {X}. the {o} was {spot}.
<feelhappy>
<thank>
?<welcome>
?from then on, {a} always put the {o} back in its place. || after that, {a} took better care of the {o}.
# lost_way | ha | * | morals_listen
$thing=a blue butterfly|a white feather in the wind|a yellow bird|a small green frog|a funny little beetle|a shiny dragonfly
<oneday>{a} saw {thing} {pl.in}. || <oneday>{thing} came by, and {a} wanted to follow it.
"stay close to home," {a.his} {p} had said. || {a.his} {p} had told {a.him} not to go too far. || "do not go too far," said {a.his} {p}.
but {a} forgot and [ran|went] [farther and farther|deeper and deeper] into the [trees|woods]. || but {a} was so curious that {a.he} forgot. {a.he} ran on and on.
>
when {a.he} stopped, nothing looked the same. || at last {a.he} looked around, and {a.he} did not know where {a.he} was. || soon the path was gone, and all the trees looked alike.
"oh no, I am lost," <said> {a}. || "where am I?" <whispered> {a}. || "which way is home?" <asked> {a}, but no one answered.
it was getting dark. <feelscared> || the sun was low in the sky. <feelscared> || <feelscared>
?an owl called in the distance. || the wind made a strange sound in the leaves. || a branch cracked somewhere behind {a.him}.
>
$X={h}
then {a} saw a small light between the trees. it was {X} with a lantern. || just then, {a.he} heard steps. it was {X}. || <softly>, someone said, "hello there." it was {X}.
"why are you out here all alone?" <asked> {X}. || <whatswrong>
"I followed {thing}, and now I cannot find my way home," <said> {a}. || "I am lost," said {a}. "I want to go home."
<dontworry> || "I know the way," <said> {X}. "come with me."
"listen to the [river|stream]," said {X}. "if we follow it, it will lead us home." || "do you see that bright star?" said {X}. "it always shines above your home." || "we will walk along the stone wall," said {X}, "and soon we will be there."
they walked [and walked|side by side], and {X} told {a} a [funny|little|long] story. || they walked together, and {a} was not so afraid anymore.
>
at last, {a} saw {a.his} own {home}. || soon {a} saw a warm light in the window. it was home! || after a while, {a.he} could smell {food}. {a.he} was home!
{a.his} {p} ran out and <hug>. || "there you are!" cried {a.his} {p}, and <hug>.
<thank>
"next time, I will stay close," <said> {a}. || "I will not run off again," {a} promised.
# found_object | ha | * | morals_honest
<oneday>{a} was walking {pl.in} when {a.he} saw something [shiny|bright|strange] on the ground. || <oneday>{a} found something {pl.in}. || <oneday>{a} kicked a leaf, and under it lay something.
$f,ff=a small silver key;key|a golden ring;ring|a little purse with coins;purse|a {o.full};{o}|a tiny brass bell;bell|a necklace of blue beads;necklace|a pretty red button;button
it was {f}! || {a} picked it up. it was {f}.
"how pretty!" <said> {a}. "can I keep it?" || "what a lucky day," <said> {a}. || {a} turned it around and around. {a.he} wanted to keep it.
?but a small voice inside {a.him} said, "it is not yours." || but then {a} thought, "someone may be looking for it."
>
"whose {ff} is this?" {a} <asked> {b}. || {a} showed the {ff} to {b}. "do you know whose it is?" {a.he} asked. || {a} went to {b} and asked about the {ff}.
"it is not mine," said {b}. "but maybe we can find the owner." || "I do not know," said {b}. "let us ask the others."
$X={h}
they asked everyone they met. at last they came to {X}. || they went from door to door until they met {X}. || so they walked to {pl2}, and there they saw {X}.
{X} was looking [under the bushes|along the path|at the ground] with a sad face. || {X} looked very sad.
"have you lost something?" <asked> {a}. || "is this {ff} yours?" <asked> {a}.
>
"my {ff}!" <cried> {X}. "I have been looking for it all day!" || {X} could not believe it. "you found my {ff}!" || "oh, yes!" said {X}. "it was a gift from my {p}, and I thought it was gone forever."
{a} gave the {ff} back. || {a} put the {ff} into {X.his} hand[ and smiled|]. || <softly>, {a} handed over the {ff}.
"you could have kept it, but you did not," said {X}. "you are very honest." || "thank you, {a}," said {X}. "you are an honest {a.kind}."
to say thank you, {X} gave them {food}. || {X} gave {a} and {b} some {food} to share. || then {X} invited them for {food}.
<feelhappy>
?{a} felt much better than if {a.he} had kept the {ff}.
# share | ha | * | morals_share
$X={b}
<oneday>{a.his} {p} gave {a.him} a basket of {food}. || <oneday>{a} got a big plate of {food} from {a.his} {p}. || <oneday>{a} went to {pl} with a bag full of {food}.
"mmm, it smells so good," said {a}. || {a.he} could hardly wait for the first bite. || "I will eat it all by myself," thought {a}.
>
then {b} came by. "that looks [good|tasty]," said {b}. "may I have a little?" || {b} sat down next to {a.him}. "I am so hungry," said {b}. "may I have some?" || soon {b} came along and looked at the {food}. "could I try some, please?" asked {b}.
"no," <said> {a}. "it is all mine." || {a} shook {a.his} head. "I do not want to share," {a.he} said. || "there is not enough for two," <said> {a}, and turned away.
{b} looked down and walked away. || {b} did not say anything. {b.he} just walked away [slowly|with a sad face]. || "oh," said {b} <softly>, and left.
{a} began to eat, but the {food} did not taste so good anymore. || {a} took a bite. it was strange. {a.he} was not enjoying the food at all. || {a} sat alone and ate, and it was very quiet.
>
{a} thought about {b}. "{b} always shares with me," {a.he} said. || {a} remembered that {b} had once given {a.him} {b.his} last cookie. || "it is no fun to eat alone," thought {a}.
so {a} [ran|hurried] after {b}. "wait!" {a.he} called. || {a} jumped up and went to find {b}. || {a} packed the food and went to look for {b}.
{a} found {b} {pl2.in}. || {b} was sitting alone {pl2.in}.
<sorry>
"please take half of it," said {a}. || "there is enough for both of us," said {a}. || {a} held out the food. "this is for you," {a.he} said.
{b} smiled a big smile. "thank you, {a}!" || "do you mean it?" asked {b}. "of course," said {a}. || {b}'s eyes grew bright. "that is very kind," said {b}.
>
they sat {pl2.in} and ate together. || they ate every bit and laughed the whole time. || they shared the food, and then {b} shared {b.his} toys.
now it tasted [wonderful|better than before|sweet and good]. || <feelhappy>
# fear | ha | * | morals_brave
$fear,sight,way=the dark;the dark corner of the room;with a little lantern|thunder;the black clouds;by counting between the flash and the sound|deep water;the deep blue water;one small step at a time|high places;the tall ladder;without looking down|loud dogs;the big dog next door;with a slow and open hand|the old bridge;the long and narrow bridge;by holding on to the rope|the big slide;the top of the slide;by holding hands
there was one thing {a} did not like. {a.he} was afraid of {fear}. || {a} was afraid of {fear}, but {a.he} did not tell anyone. || ever since {a.he} was very small, {a} had been afraid of {fear}.
when {a.he} saw {sight}, {a.he} wanted to run away. || just thinking of {sight} made {a.his} knees shake. || whenever {a} saw {sight}, {a.he} hid behind {a.his} {p}.
>
<oneday>{b} came to visit. || <oneday>{b} asked {a} to come and play. || <oneday>{a} and {b} were playing together.
then {a} saw {sight}. || all at once, there was {sight}. || after a while, they came to {sight}.
<feelscared>
"what is wrong?" asked {b}. || "why did you stop?" asked {b}. || "are you all right?" asked {b}.
"I am afraid of {fear}," <whispered> {a}. "please do not laugh." || {a} looked at {a.his} feet. "I am afraid of {fear}," {a.he} said. || "it is {fear}," <said> {a}. "I do not feel brave."
{b} did not laugh. "I used to be afraid of {fear} too," said {b}. || "everyone is afraid of something," said {b}. "I am afraid of [spiders|bees|big waves]." || "thank you for telling me," said {b}. "I can help you."
>
"let us try {way}," said {b}. || "I know a trick," said {b}. "we will do it {way}." || "my {p} showed me how," said {b}. "you do it {way}."
{a} took a deep breath. || {a} closed {a.his} eyes and counted to three. || {a} held {b}'s [hand|arm] tightly.
they tried it {way}, and nothing bad happened. || slowly, {a} tried it {way}. it was not so bad! || first it was hard. but {way}, it became easier and easier.
"I did it!" <cried> {a}. || "look at me!" <cried> {a}. "I am not afraid!" || "I am still a little afraid," said {a}, "but I did it."
{b} cheered. "you are so brave!" {b.he} said. || "I knew you could do it," said {b}. || "you see?" said {b}. "you were brave all along."
<feelhappy>
?from that day on, {fear} did not seem so bad. || after that, {a} was not so afraid of {fear} anymore.
# rescue | ha | * | morals_kind
$k,where,tool,how=kitten;up in a tall tree;a long ladder;climbed up and carried it down|duckling;in a deep hole;a soft blanket;let it down so the duckling could climb on it|lamb;in a thorny bush;a pair of scissors;cut the thorns away one by one|bird;in an old net;a small knife;cut the net very carefully|puppy;on a rock in the river;a strong rope;pulled it safely to the bank|baby hedgehog;in a muddy ditch;a wide board;made a bridge for it|butterfly;in a spider web;a soft feather;brushed the sticky web away
$X={b}
<oneday>{a} was walking {pl.in} with {b} when they heard a small cry. || <oneday>{a} heard a strange sound {pl.in}. it sounded like someone crying. || <oneday>{a} and {b} were playing {pl.in}. suddenly they heard a tiny voice.
"what was that?" asked {b}. || "did you hear that?" <asked> {a}. || "listen," <whispered> {a}. "someone needs help."
they followed the sound and found a {k} {where}. || there was a little {k} {where}! || they looked everywhere, and then they saw it. a little {k} was stuck {where}.
the poor {k} was shaking. || "help, help!" the {k} seemed to say. || the {k} looked at them with big, frightened eyes.
>
"we must help it," <said> {a}. || "poor little thing," <said> {a}. "we have to do something." || "do not be afraid, little {k}," <said> {a}. "we will get you out."
{a} tried to reach the {k}, but {a.he} was too small. || {b} tried first, but it did not work. || they tried with their bare hands, but they could not do it.
<think>
<idea>
"we need {tool}," {a.he} said. "wait here, {b}!" || "I know where to find {tool}," said {a}. || "{tool}! that is what we need," said {a}.
{a} ran home and came back with {tool}. || {a.he} ran to {h} and asked for {tool}. || soon {a.he} was back with {tool}.
>
very carefully, they {how}. || with {tool}, {a} <softly> {how}. || {b} helped while {a} {how}.
at last the {k} was free! || "hooray!" <cried> {b}. the {k} was safe. || and then the {k} was free and safe.
the {k} [jumped around|danced|moved] happily. || it looked at them as if to say thank you. || the {k} came close and touched {a}'s [hand|nose|cheek].
?then its mother came, and the {k} ran to her. || they gave the {k} some water and a little food. || they took the {k} home to its family.
<feelhappy>
?after that, the {k} came to visit them every week. || from that day on, the little {k} followed {a} everywhere.
# broken | ha | * | morals_honest
$v,vfix=blue vase;glued the pieces together|big clay pot;put the pieces together again|favourite cup;mended it with glue|glass lamp;found a new glass for it|painted plate;put it together like a puzzle|little clock;put all the wheels back in their places
{a.his} {p} had a {v} that was very [old|dear to {p.him}|special]. || on the shelf stood a {v}. it belonged to {a}'s {p}.
"please be careful with it," {a.his} {p} [always |]said. || {a} knew that {a.he} must not touch it.
>
<oneday>{a} was running around inside. || <oneday>{a} was playing with {a.his} {o} inside. || <oneday>{a} was dancing around the room.
bump! the {v} fell down and broke. || suddenly there was a loud crash. the {v} lay on the floor in pieces. || {a.he} bumped into the shelf, and the {v} fell to the floor. crash!
"oh no!" <whispered> {a}. "what have I done?" || <feelscared> "what will my {p} say?" || {a} stood very still and looked at the pieces.
?{a} thought about hiding the pieces under the [bed|rug]. || "I could say that the wind did it," thought {a}. || for a moment, {a.he} wanted to run away.
but it did not feel right. || but {a} had a bad feeling in {a.his} tummy. || but {a} knew that a lie would only make it worse.
>
when {a.his} {p} came home, {a} went to {p.him}. || so {a} went to find {a.his} {p}. || {a} waited by the door until {a.his} {p} came in.
"I broke your {v}," said {a}. "it was an accident, and I am very sorry." || <sorry> "I broke your {v}." || "I have to tell you something," said {a}. "I was running, and your {v} broke."
{a.his} {p} looked at the pieces and was quiet for a while. || {a.his} {p} took a deep breath. || {a.his} {p} sat down next to {a.him}.
"I am sad about the {v}," {p.he} said, "but I am proud that you told me the truth." || "thank you for being honest," said {a.his} {p}. "a {v} can be mended." || "you were brave to tell me," said {a.his} {p}, and <hug>.
>
together they {vfix}. || that afternoon, they sat down and {vfix}. || {a} helped {a.his} {p}, and they {vfix}.
it was not perfect, but it was [beautiful|good] in a new way. || now there were little lines in it, but {a.his} {p} liked it even more. || it took a long time, but they did it together.
{a} felt [light|much better] again. || <feelhappy>
# new_friend | ha | * | morals_friend
<oneday>a new family came to live nearby. || <oneday>a new family moved in next to {a}. || <oneday>{a} saw someone new {pl.in}.
it was a <little> {b.kind} named {b}. {b.he} did not know anyone. || there was a <little> {b.kind} sitting all alone. {b.his} name was {b}. || a shy {b.kind} named {b} stood there and looked around.
{b} was very shy and did not speak. || {b} hid behind a tree when {a} came closer. || {b} looked at the ground and said nothing.
>
{a} wanted to be friends, but {a.he} did not know what to say. || "{b} looks lonely," thought {a}. "maybe I can help." || {a} remembered how it felt to be alone.
"hello, I am {a}," <said> {a}. "do you want to play?" || "hi," <said> {a}. "I have a {o}. do you want to try it?" || {a} waved and smiled. "my name is {a}. what is yours?"
{b} shook {b.his} head and went away. || "no, thank you," <whispered> {b}. || {b} only looked at {b.his} feet.
?{a} was a little sad, but {a.he} did not give up. || "I will try again tomorrow," said {a}.
>
the next day, {a} brought some {food}. "this is for you," {a.he} said. || the next day, {a} sat down near {b} and began to draw. || the next day, {a} came back with the {o} and began to play.
{b} came a little closer. || after a while, {b} looked up. || slowly, {b} came over and sat down.
"may I try?" <asked> {b} in a small voice. || "thank you," said {b}, and for the first time {b.he} smiled. || "I like your {o}," said {b} very softly.
"of course!" said {a}. || "yes, come and play with me!" said {a}. || {a} was so happy that {a.he} laughed out loud.
>
soon they were laughing together. || they played {pl.in} until the sun went down. || they talked about everything, and {b} told [funny jokes|wonderful stories].
"I was afraid that no one would like me," said {b}. || "I thought I would be alone here," said {b}. || "this is the best day since I came here," said {b}.
"now you have a friend," said {a}. || "I like you just the way you are," said {a}. || "we will play again tomorrow," said {a}.
<feelhappy>
# quarrel | ha | * | morals_friend
{a} and {b} were good friends. || {a} and {b} had been friends for a long time. || {b} was {a}'s best friend.
<oneday>they were playing with a {o.full} {pl.in}. || <oneday>they found a {o.full} {pl.in}.
"it is my turn," said {a}. "no, it is mine!" said {b}. || both of them wanted the {o} at the same time. || "give it to me!" <cried> {a}. "no, I had it first!" <cried> {b}.
they pulled and pulled, and then, snap! the {o} broke. || {a} pulled on one side, and {b} pulled on the other. then the {o} broke in two. || they pulled so hard that they both fell down, and the {o} broke.
>
"this is your fault!" shouted {b}. || "look what you did!" <cried> {a}. || "I do not want to play with you anymore!" said {a}.
they were both very <angry>, and they went home without a word. || {b} ran one way, and {a} ran the other way. || {a} stamped {a.his} foot and went home alone.
at home, {a} tried to play alone, but it was no fun. || {a} sat by the window and thought about {b}. || that night, {a} could not sleep.
"I miss {b}," {a} told {a.his} {p}. || {a.his} {p} asked, "where is {b} today?" <feelsad> || "are you sad because of the {o}?" asked {a.his} {p}. "no," said {a}, "I am sad because of {b}."
"a {o} can be mended," said {a.his} {p}. "and so can a friendship." || "then you should tell {b.him}," said {a.his} {p}. || "someone has to say sorry first," said {a.his} {p}.
>
the next morning, {a} went to see {b}. || {a} took the broken {o} and went to find {b}. || {a} ran out of the door. halfway there, {a.he} met {b}.
{b} was coming to see {a} too! || {b} was already waiting for {a.him}. || {b} looked sad too.
"I am sorry," they both said at the same time, and then they laughed. || "I am sorry I shouted," said {a}. "I am sorry too," said {b}. || <sorry> "me too," said {b}.
together they mended the {o} with [glue|string|a bit of tape]. || they sat down and mended the {o} together.
"you can have the first turn," said {b}. "no, you can," said {a}. || after that, they took turns. || now they played with it together, and that was the most fun of all.
# skill | h | * | morals_try
$sk,past,fail,step=ride a bike;rode the bike all the way down the street;fell into the grass;keep your eyes on the road|swim;swam across the pool;got water in {a.his} nose;kick with both legs|whistle;whistled a whole song;made only a puff of air;make your lips round|skate;skated around the whole pond;slipped and fell;bend your knees|tie {a.his} shoes;tied both shoes in a neat bow;made a big knot;make two loops|play the flute;played a sweet song;made a terrible squeak;blow very softly|climb the rope;climbed to the very top;slid back down;use your feet|juggle three balls;juggled for a whole minute;dropped all the balls;begin with one ball|fly a kite;made the kite dance in the sky;got the string in a knot;wait for the wind|paint a horse;painted a beautiful horse;made it look like a potato;look closely and go slowly
{a} wanted to learn to {sk}. || more than anything, {a} wished that {a.he} could {sk}. || all of {a}'s friends could {sk}, but {a} could not.
?"it looks so easy," thought {a}. || "I will learn it today," said {a}.
>
<oneday>{a} tried for the first time. || <oneday>{a} went to {pl} to try. || <oneday>{a} decided to try.
but {a.he} {fail}. || {a.he} tried, but {a.he} {fail}. || at first it went well. then {a.he} {fail}.
{a} tried again, and again {a.he} {fail}. || {a.he} tried two more times. each time, {a.he} {fail}. || "once more," said {a}. but again {a.he} {fail}.
"I will never learn it!" <cried> {a}. || "it is too hard," <said> {a}. || <feelsad> "I cannot do it."
>
$X={h}|{b}|{a.his} {p}
{X} saw what had happened and came over. || {X} had been watching. || then {X} sat down beside {a.him}.
"do you know how many times I {pastfall} before I could do it?" said {X}. "more than a hundred!" || "nobody can do it the first time," said {X}. || "you are closer than you think," said {X}.
"{step}," said {X}, "and do not give up." || "try it like this," said {X}. "{step}." || "here is a secret," said {X}. "{step}."
{a} [dried {a.his} eyes|nodded] and tried again. || "all right," said {a}. "one more time." || {a} took a deep breath and tried it that way.
this time it was a little better. || it worked a little! || it still was not perfect, but {a} smiled.
every day, {a} practised. || {a} practised the next day, and the day after that. || for a whole week, {a} practised every afternoon.
>
then, one morning, it happened. {a} {past}! || and then, at last, {a} {past}. || one week later, {a} {past}, and everyone cheered.
"I can do it!" <cried> {a}. "I can {sk}!" || "look, look!" <cried> {a}. || <feelhappy>
{X} clapped. "I knew you could do it." || "well done!" said {X}. "you did not give up." || "I am so proud of you," said {X}.
# birthday | ha | * | morals_friend
it was {a}'s birthday. || {a} woke up and smiled. it was {a.his} birthday! || "today is my birthday," said {a} when {a.he} woke up.
{a.he} ran to {a.his} {p}, but {a.his} {p} only said, "good morning." || but at breakfast, nobody said anything about it. || {a.he} waited for someone to sing, but nobody did.
"did they forget?" thought {a}. || {a} was puzzled. "maybe they will remember later," {a.he} thought.
>
{a} went to see {b}. "do you know what day it is?" {a.he} asked. || {a} met {b} {pl.in}. "hello, {b}," said {a}. "is today not a special day?" || on the way to {pl}, {a} met {b}.
"I think it is an ordinary day," said {b}. "I am sorry, I am very busy." || "I have no time today," said {b}, and hurried away with a big bag. || "it is a nice day," said {b}, "but I must go now."
then {a} met {h}, but {h} only waved and hurried on. || {a} went to {h}, but the door was closed. || even {h} did not say anything about a birthday.
<feelsad>
{a} went to sit alone {pl2.in}. || "nobody remembers me," <whispered> {a}. || all afternoon, {a} sat {pl2.in} and threw little stones.
>
when the sun was low, {a} walked slowly home. || in the evening, {a} went home with a heavy heart.
everything was dark and quiet. {a} opened the door. || there was no light in the window. {a} opened the door very slowly.
"surprise!" shouted many voices. || suddenly all the lights went on. "happy birthday, {a}!" everyone shouted. || "happy birthday!" cried {b}, {h} and {a.his} {p}.
there were {colour} balloons everywhere, and a big cake stood on the table. || there was a cake with candles, and everyone wore a funny hat. || the room was full of friends, flowers and paper stars.
"you did not forget!" <cried> {a}. || {a} was so surprised that {a.he} could not speak. || {a} laughed and cried at the same time.
"of course not," said {b}. "we were getting ready all day." || "how could we forget you?" said {a.his} {p}, and <hug>. || "keeping a secret is very hard," said {b}, and everyone laughed.
>
{b} gave {a} a {o.full}. || {a} got many gifts, but the best one was a {o.full} from {b}. || then {a} opened a big box. inside was a {o.full}.
{a} made a wish and blew out the candles. || they sang and danced and ate cake until late. || they all played games until the moon came up.
# seed | ha | * | morals_patient
$plant,flower=a sunflower;tall yellow flower|an apple tree;little tree with white blossoms|a pumpkin;huge orange pumpkin|a rose;lovely red rose|a bean plant;tall green plant full of beans
$X={h}
<oneday>{h} gave {a} a [tiny|small|brown] seed. || <oneday>{a} found a tiny seed. {a.he} showed it to {h}. || <oneday>{a} got a little seed from {h}.
"what is it?" asked {a}. "plant it and wait," said {h}. || "if you take care of it," said {h}, "it will become {plant}." || "this little seed can become {plant}," said {h}.
{a} dug a hole [behind {a.his} {home}|in the soft earth] and put the seed inside. || {a} planted the seed in a [sunny|warm] spot. || {a} made a little bed of earth for the seed.
{a.he} watered it and sat down to wait. || "grow, little seed," said {a}, and gave it some water.
>
the next day, nothing had happened. || {a} looked the next morning, but there was only brown earth. || {a} waited all day, but nothing came up.
"why does it not grow?" <asked> {a}. || "grow faster!" <said> {a}. || "maybe it is asleep," said {a}.
{b} laughed. "it takes time," {b.he} said. || "maybe it is a bad seed," said {b}. || "let us sing to it," said {b}, and they did.
?after a week, there was still nothing, and {a} wanted to dig it up. || {a} was about to give up.
"be patient," said {h}. "under the ground, it is working hard." || "do not dig it up," said {h}. "the best things take time." || "water it every day," said {h}, "and you will see."
so {a} watered it every morning. || every day, {a} gave it water and pulled out the weeds. || rain came, and sun came, and {a} waited.
>
then, one morning, {a} saw something green. || one morning, a tiny green leaf looked out of the earth. || at last, a small green tip came up.
"it is growing!" <cried> {a}. || "hello, little plant," <said> {a}. || {a} ran to tell {b} and {h}.
day by day, it grew [taller and taller|bigger and stronger]. || it grew two leaves, and then four, and then too many to count. || week after week, it grew.
by the end of summer, there stood a {flower}. || and in the end, it became a {flower}. || when autumn came, {a} had a {flower}.
everyone came to see it. || "it is the finest one I have ever seen," said {h}. || "you did this," said {h}, "with a little care every day."
<feelhappy>
# baking | ha | * | morals_team
$cake,mis=a cake for {a.his} {p};put salt in the bowl and not sugar|bread for the whole village;forgot the yeast, and the bread was as flat as a stone|cookies for the fair;dropped the bag, and flour flew everywhere|a pie for {h};let the first one burn in the oven|a big cake for the party;spilled the milk all over the floor
<oneday>{a} wanted to bake {cake}. || <oneday>{a} and {b} decided to bake {cake}.
"I will help you," said {b}. || {b} came to help. || "let us do it together," said {b}.
they took flour, eggs, butter and milk. || {a} read the recipe, and {b} brought the big bowl. || {b} broke the eggs, and {a} stirred.
they sang while they worked. || soon there was flour on their noses. || "this is fun," said {b}.
>
but then {a} {mis}. || but {a} was in a hurry and {mis}. || then something went wrong. {a} {mis}.
"oh no," <cried> {a}. "now it is all spoiled!" || "what a mess!" <cried> {b}. || they looked at each other. what now?
<feelsad>
"everyone makes mistakes," said {b}. "we can start again." || "do not cry," said {b}. "let us clean up and try again." || {b} began to laugh. soon {a} had to laugh too.
first they cleaned the kitchen. || they swept the floor and washed the bowl. || {b} took the broom, and {a} took the cloth.
then they read the recipe once more, slowly and carefully. || this time, {a} read every line twice. || then they started again, and this time they were careful.
>
soon a sweet smell filled the air. || they waited by the oven. it smelled wonderful. || when they opened the oven, it was golden brown.
"it is perfect!" said {b}. || "we did it!" <cried> {a}. || <feelhappy>
$X={a.his} {p}
when {X} came in, {p.he} could not believe {p.his} eyes. || they called {X} to the table. || they put it on the best plate and called {X}.
"this is the best I have ever tasted," said {X}. || {X} took a bite and smiled. "delicious!" || everyone got a piece, and nothing was left, not even a crumb.
# race | ha | * | morals_kind
every year there was a big race {pl.in}. || <oneday>there was a race from {pl} to {pl2}. || "tomorrow is the great race," said {h}.
{a} wanted to win the {colour} ribbon. || {a} had practised for weeks. || {a} was fast, and {a.he} hoped to win.
{b} was going to run too. || "I will win," said {b}. "we will see," said {a}.
>
"ready, steady, go!" called {h}. || {h} lifted a flag. "go!" {h.he} shouted. || a bell rang, and everyone began to run.
{a} ran as fast as the wind. || {a} ran and ran, and soon {a.he} was in front. || off they went, over the hill and past the old fence.
?{a} could already see the finish. || only one more hill, and {a} would win. || the crowd cheered.
suddenly, {a} heard a cry. {b} had fallen down. || then {a} looked back. {b} was sitting on the ground and holding {b.his} foot. || just then, {b} tripped over a root and fell.
>
$X={b}
{a} stopped. "if I help, I will not win," {a.he} thought. || {a} looked at the finish, and then {a.he} looked at {b}. || for a moment, {a} did not know what to do.
but {b} was hurt. {a} turned around and ran back. || then {a} turned around. || "a friend is more important than a ribbon," thought {a}, and {a.he} ran back.
"are you hurt?" asked {a}. "my foot hurts," said {b}. || "go on," said {b}. "you can still win!" "not without you," said {a}. || "lean on me," said {a}. "we will go together."
arm in arm, they walked to the finish. || {a} helped {b} up, and slowly they went on together. || step by step, they walked the last part together.
they were the very last, but everyone cheered for them. || all the others were there already, but the cheering was loudest for {a} and {b}.
>
$X={h}
"you did not win the race," said {h}, "but you won something better." || {h} came to {a} with a big smile. "this is for the kindest runner," {h.he} said. || {h} gave both of them a ribbon. "this one is for kindness," {h.he} said.
<feelhappy>
{b} put the ribbon around {a}'s neck. || "you are the best friend in the world," said {b}. || "thank you, {a}," said {b}. "I will never forget it."
# storm | ha | rainy | morals_team
<oneday>dark clouds came over {pl}. || <oneday>the wind began to blow harder and harder. || <oneday>the sky turned dark in the middle of the day.
"a storm is coming," said {a.his} {p}. || "come inside, {a}," called {a.his} {p}. "there will be a storm." || {h} looked at the sky. "a big storm is on its way," {h.he} said.
soon the rain fell like a waterfall. || lightning flashed, and thunder rolled. || the wind howled around the {home} all night.
<feelscared> || {a} hid under a blanket. || {a} sat close to {a.his} {p}.
>
in the morning, it was quiet, and {a} went out to look. || when the storm was over, {a} looked outside. || at last the storm went away.
a big tree had fallen on {b}'s home. || {b}'s roof was gone! || the wind had broken {b}'s home into pieces.
{b} stood in front of it and cried. || "my home is gone," said {b}. "where shall I sleep?" || {b} was wet and cold and very sad.
"you can stay with us," said {a}. || "come with me," said {a}, and put a blanket around {b}. || "do not worry," said {a}. "we will help you build it again."
>
{a} went to everyone and asked for help. || {a} ran from door to door. "{b} needs our help!" {a.he} called. || {a.his} {p} called all the neighbours together.
soon they all came. {h} brought wood, and {a.his} {p} brought nails. || {h} came with a hammer, and others came with boards and rope. || one brought straw, one brought wood, and {h} brought a big pot of soup.
they worked all day long. || some sawed, some carried, and some cooked. || even the smallest ones helped.
{a} carried the small boards. || {a} and {b} painted the door {colour}. || {a} sang a song, and the work went faster.
>
when the sun went down, {b} had a new home. || by evening, the new roof was done. || after three days, the new home was ready, and it was stronger than before.
"it is even better than the old one," said {b}. || "how can I ever thank you?" said {b}. || {b} was so happy that {b.he} danced.
"you would do the same for us," said {a}. || "that is what neighbours are for," said {h}.
# wish | ha | * | morals_own
$wish,res,bad,back=be as tall as a tree;taller than all the trees;could not fit through {a.his} own door;to be my own size again|fly like a bird;up in the air like a feather;could not come down and the wind was cold;to have my feet on the ground again|be able to sleep all day;so sleepy that {a.he} could not stay awake;missed all the games and all the fun;to be awake again|have a mountain of {food};in front of a huge mountain of {food};ate until {a.his} tummy hurt;to have only one small plate again|be invisible;so invisible that nobody could see {a.him};called and waved, but {a.his} friends did not see {a.him};to be seen again|turn everything into gold;surrounded by gold;could not eat, because even the bread was gold;to have everything as it was before
<oneday>{a} found a strange {colour} stone {pl.in}. || <oneday>{a} picked up a smooth stone {pl.in}. it began to glow. || <oneday>{a} saw a small light {pl.in}. it came from a {colour} stone.
"I am a magic stone," said a tiny voice. "you may make two wishes." || when {a} rubbed it, a voice said, "you have two wishes."
{a} could hardly believe it. || {a} was so surprised that {a.he} nearly dropped it. || "a talking stone!" <cried> {a}.
{a} thought about it for a while. "I wish to {wish}," {a.he} said. || "that is easy," said {a}. "I want to {wish}!" || "oh, I have always wanted to {wish}," said {a}.
>
there was a flash of light. suddenly {a} was {res}. || whoosh! all at once, {a} was {res}. || {a} closed {a.his} eyes. when {a.he} opened them, {a.he} was {res}.
at first, it was [wonderful|great fun]. || "this is wonderful!" <cried> {a}.
but soon {a} {bad}. || but after a while, {a.he} {bad}. || then {a.he} {bad}.
{b} came by. "where is my friend {a}?" asked {b}. || "this is not so good after all," thought {a}. || {a} began to feel lonely.
<feelsad>
>
then {a} remembered the second wish. || "I still have one wish," said {a}. || {a} took out the stone again.
"please," said {a}, "I wish {back}." || "I only want one thing," said {a}. "I wish {back}."
there was another flash, and everything was as it had been. || the stone glowed once more, and it was done. || "as you wish," said the voice, and it was done.
{a} laughed with joy and ran to find {b}. || {a} ran home as fast as {a.he} could and hugged {a.his} {p}. || <feelhappy>
{a} told {b} everything. "I like you just as you are," said {b}. || "did you make a good wish?" asked {b}. "yes," said {a}. "the second one was the best."
?the stone was now just a plain grey stone, but {a} kept it [on the shelf|in a little box|under the pillow].
# treasure | ha | * | morals_friend
<oneday>{a} found an old map in a [box|bottle|book]. || <oneday>{a} and {b} found a piece of old paper {pl.in}. it was a map! || <oneday>{h} gave {a} an old map.
$m1,m2,m3=the crooked tree;the round rock;the old well|the stone bridge;the hollow log;the tall pine|the broken fence;the little spring;the mossy wall|the three birches;the narrow path;the hill with the flat top
on it was a {colour} cross. "it is a treasure map!" <cried> {a}. || "look, there is a cross," said {b}. "there must be a treasure!"
they packed some {food} and a small spade. || they took a rope, a lamp and some {food} and set off. || {b} carried the spade, and {a} carried the map.
>
first they went to {m1}. || "first we must find {m1}," said {a}. soon they saw it. || the map led them to {m1}.
from there they walked twenty steps to {m2}. || then they went on to {m2}. || after that, they had to find {m2}. it was not easy.
?on the way, it began to rain, and they hid under a big leaf. || a stream was in their way, so they jumped from stone to stone. || they lost their way once, but a friendly bird showed them where to go.
?"I am tired," said {b}. "only a little farther," said {a}.
at last they came to {m3}. || and there, at the end of the path, was {m3}. || "there is {m3}!" <cried> {a}. "this is the place!"
>
they dug and dug until the spade hit something hard. || {a} began to dig. soon there was a loud knock. || they took turns digging. then {b} saw the corner of a box.
it was a small wooden box. || they pulled out an old chest with a rusty lock. || "a box!" they both shouted.
inside there was no gold. there was [only a letter|a bag of seeds|an old picture|a box of coloured pencils]. || they opened it. inside was a note. it said, "the real treasure is the friend who walked with you." || they opened it slowly. inside lay two wooden cups and a letter. "drink together, and be friends forever," it said.
{a} looked at {b}, and they both began to laugh. || at first they were surprised. then {b} smiled. "it was the best day ever," {b.he} said. || "no gold," said {b}. "but we had a real adventure."
they sat down and shared the {food}. || they put in a gift of their own and buried the box again for the next ones. || they went home {#sing} and planned the next adventure.
# noise | ha | * | morals_brave
$noise,cause=tap, tap, tap;a branch that was knocking on the window|scratch, scratch;a little mouse who was looking for crumbs|whoo, whoo;the wind that was blowing into an empty bottle|creak, creak;the old gate that was swinging in the wind|drip, drop;water that was falling into a bucket|bump, bump;{b}, who could not find the door in the dark|rustle, rustle;a hedgehog who was hunting for beetles in the leaves
one night, {a} lay in bed and could not sleep. || one night, {a} woke up. it was very dark. || it was late, and everyone was asleep but {a}.
{noise}, something went. || then {a.he} heard a strange noise. {noise}. || suddenly there was a sound. {noise}!
"what is that?" <whispered> {a}. || "is it a monster?" thought {a}. || {a} sat up and listened.
<feelscared>
{a} pulled the blanket over {a.his} head. {noise}, it went again. || {a.he} waited, but there it was again. {noise}.
>
{a} wanted to call {a.his} {p}, but then {a.he} thought, "I will look for myself." || "maybe it is more afraid than I am," said {a}. || "I am going to be brave," <whispered> {a}.
{a.he} took a small lamp and got out of bed. || with a candle in {a.his} hand, {a} went to see. || on tiptoe, {a} went to the door.
step by step, {a.he} came closer. {noise}. || the floor was cold under {a.his} feet. || {a.his} shadow on the wall was as big as a giant.
{a} counted to three and looked. || {a} held up the light.
>
and what was it? it was only {cause}! || there was no monster. it was {cause}. || {a} began to laugh. it was just {cause}.
"so it was only you," said {a}. || "how silly I was," said {a}, and laughed. || "you gave me a fright," said {a}.
{a.his} {p} had heard the steps and came in. "why are you awake?" {p.he} asked. || just then, {a.his} {p} came. "is everything all right?" {p.he} asked.
{a} told {p.him} everything. || "I heard a noise," said {a}, "and I went to look all by myself."
"that was very brave," said {a.his} {p}. || "my brave little one," said {a.his} {p}, and <hug>. || {a.his} {p} smiled and gave {a.him} a cup of warm milk.
then {a} went back to bed and slept until morning. || now the noise was not scary at all, and {a} soon fell asleep. || {a} curled up in bed. {noise}, it went, and it sounded like a song.
# sick | ha | * | morals_kind
<oneday>{a} went to play with {b}, but {b} did not come out. || <oneday>{a} waited for {b} {pl.in}, but {b} did not come. || <oneday>{a} heard that {b} was sick.
"where is {b}?" {a} asked {h}. "{b} is ill and must stay in bed," said {h}. || {a} knocked on the door. "I am sick," said {b}. "I cannot play today." || {b} lay in bed with a red nose and a sore throat.
"poor {b}," said {a}. || {a} felt sorry for {b.him}. || "it must be no fun to stay in bed all day," thought {a}.
>
<think>
<idea>
{a} went to {pl} and picked a bunch of [yellow|wild|blue] flowers. || first, {a} picked some flowers {pl.in}. || {a} made a card with a big sun on it.
then {a.he} asked {a.his} {p} to help {a.him} make soup. || "can we make soup for {b}?" {a} asked {a.his} {p}. || at home, {a} and {a.his} {p} cooked a pot of vegetable soup.
they cut carrots and onions and stirred the pot. || it smelled so good that {a} got hungry too. || {a} put in a pinch of salt and a lot of love.
?on the way it was windy, but {a} did not spill a drop. || {a} carried the pot very carefully, step by step.
>
"hello, {b}!" said {a}. "I brought you something." || when {a} came in, {b} sat up in bed. || {b} was very surprised to see {a}.
{b} ate the soup, and {b.his} cheeks turned pink. || "mmm," said {b}. "I feel warm all the way to my toes." || {b} ate every spoonful.
then {a} told {b.him} a funny story about a [goose who wore a hat|frog who wanted to be king|bear who was afraid of a bee|cloud that could not stop sneezing]. || after that, {a} read to {b.him} from a book. || then {a} sang a funny song and danced around the bed.
{b} laughed so much that {b.he} forgot to cough. || {b} laughed and clapped. || soon {b} was smiling again.
"you are the best medicine," said {b}. || "I feel better already," said {b}. "thank you, {a}." || "now I am not lonely anymore," said {b}.
>
a few days later, {b} was well again. || after three days, {b} could get up. || soon {b} could play outside again.
the first thing {b.he} did was to bring {a} {food}. || the first one {b.he} came to see was {a}. || they ran to {pl} and played all day.
# build | ha | * | morals_team
$thing,use,trouble=a tree house;sat in it and looked over the whole land;the ladder was too short|a raft;floated slowly down the stream;the raft began to sink|a little bridge;walked across it without getting wet;the boards would not stay in place|a swing;took turns and flew up to the sky;the rope was too short|a cart;rolled down the hill in it;one wheel fell off|a bird house;watched a family of birds move in;the hole was too small
<oneday>{a} said to {b}, "let us build {thing}!" || <oneday>{a} and {b} decided to build {thing}. || <oneday>{a} had a dream. {a.he} wanted to build {thing}.
"that is a great idea," said {b}. || {b} was excited. "when do we begin?" {b.he} asked.
they drew a plan on a piece of paper. || {a} made a plan, and {b} went to get the tools. || they looked for everything they needed {pl.in}.
>
they worked all morning. {a} held, and {b} tied. || {a} did the measuring, and {b} did the carrying. || it was hard work, but they sang as they worked.
but then there was a problem. {trouble}. || everything went well until noon. then {trouble}. || "oh no," said {b}. {trouble}.
"we will never finish," said {b}. || {a} kicked a stone. "it does not work," {a.he} said. || they were both very tired and a little <angry>.
?"let us take a break," said {a}. they sat down and ate {food}.
$X={h}
then {h} came by and looked at their work. || {h} was passing by and stopped. || they went to {h} and asked for help.
"you have done a lot already," said {h}. "may I show you something?" || "I had the same trouble once," said {h}. || "that is easy to mend," said {h}, "if all three of us work together."
{h} showed them how to do it right. || {h} gave them some strong rope and good advice. || with {h}'s help, they started again from the beginning.
>
by the end of the day, it was finished. || at last, it was done! || three days later, everything was ready.
"it is beautiful," said {b}. || "we made it ourselves," said {a} proudly. || <feelhappy>
they {use}. || that evening, all three of them {use}. || then they invited all their friends, and together they {use}.
# greedy | ha | * | morals_listen
{a} loved to eat sweet things. || {a} always wanted a second piece of everything. || nobody loved {food} more than {a}.
<oneday>{a.his} {p} made a lot of {food} for the feast. || <oneday>there was a big feast {pl.in}, and there was a table full of {food}. || <oneday>{h} brought a huge bowl of {food}.
"you may have one piece now," said {a.his} {p}. "the rest is for tonight." || "do not eat too much," said {a.his} {p}. || "please wait until the others come," said {h}.
>
but when {a} was alone, {a.he} looked at the {food}. || but it smelled so good that {a} could not wait. || {a} tried to think of something else, but {a.he} could not.
"just one more bite," said {a}. "nobody will see it." || "one little bite will not matter," thought {a}.
{a.he} took one, and then another, and then another. || {a.he} ate and ate until there was almost nothing left. || one bite became two, and two became ten.
suddenly, {a.his} tummy began to hurt. || soon {a} felt very strange. || then {a} had to sit down. "ooh, my tummy," {a.he} said.
>
when the others came, they saw the empty bowl. || {b} came in. "where is all the {food}?" {b.he} asked. || then {a.his} {p} came back and saw what had happened.
{a}'s face turned red. || {a} could not look at them. || {a} held {a.his} tummy and groaned.
<sorry> "I ate it all." || "it was me," said {a}. "I ate too much, and now I feel sick." || "I did not listen," said {a}. "now there is nothing left for you."
{a.his} {p} gave {a.him} a cup of tea and put {a.him} to bed. || "your tummy has told you already," said {a.his} {p}. || nobody was angry for long.
>
the next day, {a} got up early. || the next morning, {a} felt better.
{a.he} baked and cooked all day to make new {food}. || {a} went to {pl} to gather everything that was needed, and made new {food} with {a.his} {p}. || {a} worked hard to make it good again.
then {a.he} invited everyone, and {a} took only one small piece. || "please, you first," said {a} to {b}. || {a} gave the biggest piece to {b} and the smallest one to {a.himself}.
"thank you, {a}," said {b}. "now everything is fine again." || everyone ate and laughed, and it was a good feast after all. || <feelhappy>
# boast | a | * | morals_own
$can,claim,flop=jump over the stream;I can jump higher than anyone;landed in the middle of the water with a splash|climb the tallest tree;I can climb better than a squirrel;got stuck on a high branch|find the way through the forest at night;I never get lost;walked around the same rock three times|carry the big pumpkin alone;I am the strongest of all;fell down, and the pumpkin rolled away|swim faster than the fish;no one swims like me;got caught in the water plants
$X={b}
{a} liked to talk about {a.himself}. "{claim}," {a.he} said every day. || "{claim}!" {a} told everyone. || {a} always wanted to be the best. "{claim}," {a.he} said.
?{b} only smiled and said nothing. || the others did not like it so much.
>
<oneday>{a} said, "today I will {can}!" || <oneday>{b} asked, "can you really {can}?" "of course I can," said {a}. || <oneday>they were all {pl.in}. "watch me," said {a}. "I will {can}."
everyone came to watch. || all the animals came to look. || "be careful," said {b}.
"I do not need help," said {a}. || "it is easy for me," said {a}, with {a.his} nose in the air.
but {a} {flop}. || {a.he} tried. but {a.he} {flop}. || one, two, three! and {a.he} {flop}.
>
some of them laughed. {a} wanted to hide. || {a}'s ears turned red. || <feelsad>
"go away," said {a}. || "do not look at me," <whispered> {a}.
but {b} did not laugh. {b} came to help. || {b} came at once. "give me your paw," {b.he} said. || "hold on," said {b}. "I will help you."
"why do you help me?" asked {a}. "I was so silly." || "I said that I was the best," said {a}, "but it was not true."
"you do not have to be the best," said {b}. "we like you anyway." || "you are good at many things," said {b}. "you make us laugh, and you are a good friend." || "nobody can do everything," said {b}. "I cannot do it either."
>
after that, {a} did not boast so much. || from then on, {a} listened more and talked less. || the next day, {a} asked {b}, "will you show me how you do it?"
together they practised, and it was much more fun. || they laughed about it for a long time. || and do you know what? everyone liked {a} even better.
# warning | ha | cold | morals_listen
it was winter, and {wx}. || winter had come, and the lake was covered with ice. || one winter morning, the pond was frozen.
"the ice is too thin," said {a.his} {p}. "do not go on it." || "stay away from the ice," said {h}. "it is not safe yet." || {a.his} {p} said, "you may play in the snow, but not on the ice."
"yes, yes," said {a}, but {a.he} was not really listening. || {a} nodded and ran off to meet {b}.
>
$X={b}
{a} and {b} made a snowman and threw snowballs. || they played in the snow and laughed.
then {a} looked at the ice. it was so smooth and shiny. || then {a.his} {colour} hat flew off and landed on the ice. || after a while, {a} had an idea. "let us slide on the ice!" {a.he} said.
"we are not allowed to," said {b}. || "it is not safe," said {b}. "please do not go." || {b} shook {b.his} head. "remember what they told us."
"only one step," said {a}. || "it looks strong enough," said {a}. || but {a} did not listen.
{a} took one step, and another. crack! went the ice. || {a.he} slid a little way. then there was a loud crack. || at first nothing happened. then the ice began to crack.
>
"help!" <cried> {a}. {a.he} could not move. || <feelscared> "help me, {b}!" || cold water came up over the ice. {a} was very frightened.
"lie down and do not move!" called {b}. || "stay still!" shouted {b}. "I will get help!"
{b} found a long branch and held it out. || {b} ran to get {h}, who came with a long rope. || {h} heard the cry and came with a ladder.
{a} held on tightly and was pulled back to the bank. || slowly, very slowly, {a} crawled back to the shore. || with all their strength, they pulled {a} to safety.
>
{a} was wet and cold, but safe. || {a} was shaking from head to toe.
at home, {a.his} {p} put {a.him} by the fire with a warm blanket. || they wrapped {a.him} in a blanket and took {a.him} home.
"I should have listened," said {a}. || <sorry> "I did not listen to you." || "thank you for saving me, {b}," said {a}. "you were right."
{a.his} {p} <hug>. "I am just glad that you are safe," {p.he} said. || "you are safe now," said {a.his} {p}, "and that is what matters."
# winter_gift | ha | cold | morals_share
it was the coldest day of the winter. || it was winter, and {wx}. || outside, {wx}, and {a} was glad to be warm.
{a} had a {colour} scarf that {a.his} {p} had made. || {a.his} {p} had knitted a warm {colour} scarf for {a.him}. || {a} put on {a.his} new {colour} coat, which was very warm.
$k=a little bird|a small mouse|a thin cat|a baby squirrel|an old dog
>
on the way to {pl}, {a} saw {k} under a bush. || {a} went for a walk and saw {k} in the snow. || then {a} heard a soft sound. it was {k}.
it was shaking with cold. || its eyes were half closed, and it was cold and wet. || it had no warm place to go.
"you poor little thing," said {a}. || "are you cold?" <asked> {a}. || "you need help," <whispered> {a}.
{a} took off {a.his} own warm scarf and wrapped it around the animal. || {a} did not think for long. {a.he} wrapped it in {a.his} own warm scarf. || with {a.his} warm scarf, {a} made a little nest.
now {a.he} was cold, but {a.he} did not mind. || the wind blew, but {a} felt warm inside.
>
$X={a.his} {p}
{a} carried it home. || very carefully, {a.he} took it home in {a.his} arms.
"may it stay with us?" {a} asked {a.his} {p}. "until spring," {p.he} said. || "where is your scarf?" asked {a.his} {p}. then {p.he} saw the little guest and smiled. || "look who I found," said {a}. {a.his} {p} put more wood on the fire.
they gave it some warm milk and soft bread. || they made a bed for it in a box near the fire. || it drank some warm water and fell asleep.
the next morning, it was [well and lively|much stronger]. || day after day, it grew stronger. || soon it was running around the room.
>
when spring came, it was time to say goodbye. || one day, the snow melted, and {a} opened the door.
"come back and visit me," said {a}. || {a} was a little sad, but {a.he} was happy too. || "be happy," <whispered> {a}.
and it did come back, every single morning. || the next winter, it came back and sat by the window. || every spring, it came to say hello.
# market | h | * | morals_honest
<oneday>{a.his} {p} gave {a} three coins. "please buy {food} at the market," {p.he} said. || <oneday>{a} was allowed to go to the market all alone. "buy {food}, please," said {a.his} {p}.
{a} felt very big. || {a} put the coins into {a.his} pocket and set off. || "I can do it," said {a} proudly.
the market was full of people. there were [cheese and bread|fish and flowers|apples and eggs], and someone played music. || there was so much to see. {a} looked at the {colour} ribbons and the sweet buns. || everywhere there were voices, colours and good smells.
>
{a} came to the stand of {h}. "{food}, please," {a.he} said. || at last, {a} found what {a.he} was looking for at {h}'s stand.
but when {a} put {a.his} hand in {a.his} pocket, it was empty! || {a} reached into {a.his} pocket. there was a hole in it! || but where were the coins? they were gone!
<feelsad>
$X={h}
"do not cry," said {h}. "let us think." || <whatswrong> "I have lost my money," said {a}.
"walk back the way you came and look closely," said {h}. || "you can help me for an hour," said {h}, "and I will give you the {food}."
{b} came by and wanted to help too. || {a} met {b}, and they looked together. || "I will help you," said {b}, who had heard everything.
>
they looked under every stand. at last, {b} saw something shine. || "I found one!" called {b}. soon they had found all three. || behind a barrel of apples lay the three coins. || an old man held up his hand. "are these your coins?" he asked.
{a} ran back and paid for the {food}. || {a} thanked everyone and bought the {food}. || at last, {a} could buy the {food}.
{h} gave {a} back one coin too many. || {h} made a mistake and gave {a} too much money back.
"this is too much," said {a}, and gave the coin back. || {a} counted it. "this coin is yours," {a.he} said to {h}.
"what an honest child you are," said {h}, and gave {a} a sweet apple. || "thank you," said {h}. "come back soon."
at home, {a.his} {p} sewed up the hole in {a.his} pocket. || {a} told {a.his} {p} everything, and they sewed up the pocket together.
# moon | ha | * | morals_friend
every night, {a} looked at the [moon|stars]. || {a} loved the moon. it was so round and bright. || when it was dark, {a} always looked up at the sky.
"I want to touch the moon," said {a}. || "I wish I could catch the moon," {a.he} told {b}. || "do you think I can reach the moon?" {a} asked {b}.
?"it is very far away," said {b}. || "nobody can do that," said {b}.
>
$t1,t2,t3=climbed the tallest hill;stood on a big rock;jumped as high as {a.he} could|climbed a tall tree;went to the very top branch;stretched out {a.his} arm|built a tower of boxes;put a chair on top;stood on the tips of {a.his} toes
so {a} {t1}, but the moon was still far away. || the first night, {a} {t1}. it was not high enough.
then {a.he} {t2}, but that did not help. || {a} {t2} and {t3}. but no, it was too far.
?"maybe I can catch it with a net," said {a}. but the net stayed empty. || "come down, moon!" called {a}, but the moon only smiled.
<feelsad>
>
$X={h}
{h} saw {a} and {b} and came over. || they went to {h}, who knew many things. || "what are you doing so late?" asked {h}.
"I want to have the moon," said {a}, "but I cannot reach it." || "I cannot reach the moon," said {a}.
{h} smiled. "come with me," {h.he} said, "and look into the water." || "I know how you can hold the moon," said {h}. {h.he} filled a bowl with water.
there, in the still water, was the moon! || {a} looked down. the moon was swimming in the water, round and bright.
"I have the moon!" <cried> {a}. || <feelhappy> || {a} put one finger into the water, and the moon danced.
"the moon belongs to everyone," said {h}. "you can share it with the whole world." || "you cannot keep it," said {h}, "but you can look at it with a friend." || "some things are beautiful because they are far away," said {h}.
>
{a} and {b} sat side by side and looked at it for a long time. || then they all sat together and drank tea under the stars. || since then, {a} and {b} met every full moon and looked at the sky together.
?"good night, moon," said {b}. || "look," said {b}, "a falling star!"
# boat | ha | * | morals_team
<oneday>{a} and {b} found an old boat by the [lake|river|sea]. || <oneday>{a} and {b} went out in a little boat. || <oneday>{h} lent {a} and {b} a small boat.
"let us go to the island," said {a}. || "we are going to sea!" <cried> {b}. || they wanted to see the little island with the [lighthouse|three trees|old tower].
they took {food} and a {colour} flag. || they packed water, {food} and a map. || {b} was the captain, and {a} had the oars.
>
the water was calm, and the boat went gently up and down. || {wx}, and the water was like glass. || fish swam beside the boat, and a white bird flew above it.
but in the middle, a strong wind came up. || then {b} saw water in the boat. "there is a hole!" {b.he} shouted. || suddenly a big wave hit the boat, and one oar fell into the water.
<feelscared>
"what do we do now?" asked {b}. || "do not panic," said {a}. "let us think." || "stay calm," said {b}. "we will do this together."
>
<idea>
{a} took a cup and threw the water out, and {b} rowed with all {b.his} strength. || they used {b}'s coat as a sail, and the wind pushed them to the shore. || they both took hold of the one oar and pulled. one, two! one, two!
?"faster!" called {a}. "we are almost there!" || they worked together and did not give up.
at last, the boat touched the sand. || finally, they reached the island. || after a long time, they felt the ground under the boat.
"we made it!" they shouted. || they lay down in the warm sand and laughed. || <feelhappy>
>
on the island they found [pink shells|sweet berries|a nest with three eggs|a small cave|a friendly turtle]. || they walked around the whole island and ate {food}. || they mended the boat with a piece of wood and some cloth.
later, {h} came with a bigger boat to take them home. || when the wind was gone, they rowed home. || in the evening, they sailed home over the golden water.
"you are a good captain," said {a}. "and you are a good sailor," said {b}. || "next time, we will look at the boat first," said {b}, and {a} agreed.
# tidy | h | * | morals_patient
{a}'s room was very messy. || there were toys all over {a}'s room. || nobody could walk through {a}'s room without stepping on a toy.
"please tidy your room," said {a.his} {p}. || "it is time to tidy up," said {a.his} {p}. || {a.his} {p} looked in and sighed. "what a mess," {p.he} said.
"I will do it later," said {a}. || "tidying is boring," said {a}. || {a} did not want to. {a.he} wanted to play.
>
then {b} came to visit. "let us play with your {o.full}," said {b}. || <oneday>{b} came and asked, "may I see your {o}?"
{a} looked and looked, but {a.he} could not find the {o}. || "it is here somewhere," said {a}. but where was it? || {a} looked under the shirts and behind the boxes, but the {o} was not there.
"how can you find anything here?" asked {b}. || {b} tripped over a shoe. "ouch!" {b.he} said.
?{a} was a little ashamed. || {a} felt {a.his} cheeks grow hot.
"I know a game," said {b}. "let us see who can put away the most things." || "I will help you," said {b}. "together it will go fast." || "let us pretend that we are robots," said {b}. "cleaning robots!"
>
they put the books on the shelf and the blocks in the box. || {a} picked up the clothes, and {b} picked up the toys. || they sang a song and put one thing after another in its place.
under the bed they found [a sock|a dry apple|a lost letter|three coins], and behind the chair they found a [teddy bear|puzzle piece|paper plane]. || it was like a treasure hunt.
and there, at the very bottom, was the {o}! || then {a} lifted the last pillow. "my {o}!" {a.he} cried. || "look what I found!" called {b}. it was the {o}.
soon the room was clean and bright. || when they were done, the room looked twice as big. || "now there is room to dance," said {b}.
>
{a.his} {p} looked in and could not believe it. || "wonderful!" said {a.his} {p}. "this calls for {food}." || {a.his} {p} brought them {food} because they had worked so hard.
then {a} and {b} played with the {o} all afternoon. || after that, {a} tidied up a little bit every evening. || from that day on, every toy had its own place.
# band | ha | * | morals_own
$i1,i2=a drum;a flute|a violin;a trumpet|an old guitar;two wooden spoons|a bell;a drum|a whistle;a tin pot
<oneday>{a} heard music {pl.in}. || <oneday>there was going to be a summer party {pl.in}. || <oneday>{h} said, "we need music for the feast."
"I want to make music too," said {a}. || {a} had {i1}, and {b} had {i2}. || "let us start a band," said {b}.
{a} played {i1}, and {b} played {i2}. || {a} took {i1}, and {b} took {i2}, and they began.
>
but it sounded terrible. || it was very loud, but it was not music. || {a} played fast, and {b} played slowly. what a noise!
{h} covered {h.his} ears. || the birds flew away. || "stop, stop!" called {a.his} {p}.
"you are too fast," said {b}. "you are too slow," said {a}. || <feelsad> || "maybe we are not good enough," said {a}.
$X={h}
"you both play well," said {h}, "but you do not listen to each other." || {h} said, "music is like talking. first you listen, and then you answer." || "close your eyes," said {h}, "and listen to your friend."
>
they tried again. this time, {a} listened to {b}, and {b} listened to {a}. || so they began again, very softly. || {a} counted, "one, two, three," and they started together.
slowly, the noise turned into a song. || it sounded better and better. || it was only a small song, but it was beautiful.
they practised every day until the feast. || day after day, they practised {pl2.in}. || for one week, they practised until the stars came out.
at the feast, {a} was very nervous. || then the big evening came. everyone was there. || on the evening of the feast, {a}'s hands were shaking.
"just listen to me," <whispered> {b}, "and I will listen to you." || {a} looked at {b}, and {b} smiled. || they took a deep breath and began.
>
everyone began to dance. || old and young danced under the lights. || when the song was over, everyone clapped and called, "again, again!"
<feelhappy>
"that was the best music I have ever heard," said {a.his} {p}. || they played the song three times, and {h} danced the longest of all.
# letter | ha | * | morals_kind
$X={h}
<oneday>{h} asked {a} to bring a letter to {b}. || <oneday>{h} had hurt {h.his} foot. "who will carry my letter to {b}?" {h.he} asked. || <oneday>{a} found a letter that had been lost. it was for {b}.
"it is very important," said {h}. || "I will do it," said {a}. || "you can trust me," said {a}.
it was a long way, past {pl} and over the hills. || {b} lived far away, behind {pl}. || {a} put the letter in {a.his} bag and set off.
>
$o1,o1s=a wide stream;walked along the bank until {a.he} found a fallen tree|a tall fence;found a small gap to crawl through|a dark tunnel;sang a song to feel brave|a field of mud;jumped from stone to stone|a steep hill;went up slowly, with many small steps
after a while, {a} came to {o1}. || soon there was {o1} in the way. || the first hour was easy. then {a} came to {o1}.
"how can I get past it?" <asked> {a}. || "I must not give up," said {a}.
so {a} {o1s}. || {a} looked around and then {o1s}.
then the wind came and took the letter away! || then it began to rain. {a} hid the letter under {a.his} coat. || on the way, {a} met a lost duckling, and {a.he} showed it the way to the pond.
{a} ran after it and caught it just in time. || "the letter must stay dry and safe," thought {a}. || "I cannot stop now," said {a}, and went on.
>
the sun was going down when {a} saw {b}'s home. || at last, {a} knocked on {b}'s door. || tired and hungry, {a} came to {b}'s door.
"a letter for you," said {a}. || {b} opened the door. "who are you?" {b.he} asked. "I have a letter for you," said {a}.
{b} opened the letter and began to read. "{h} has invited me to a feast!" {b.he} cried. || {b} read it, and a tear ran down {b.his} cheek. "I thought {h} had forgotten me," {b.he} said. || as {b} read, {b.his} face began to shine. "it is from {h}, my old friend!"
"you came such a long way," said {b}. "come in and eat." || {b} gave {a} {food} and a warm bed for the night. || "thank you for carrying it so far," said {b}.
the next day, they went back together. || in the morning, {b} walked back with {a} to see {h}.
when {h} saw {b}, they hugged for a long time. || {h} and {b} laughed and talked all night long.
{a} felt proud and <happy>. || <feelhappy>
# paint | ha | * | morals_own
there was a painting contest {pl.in}. || <oneday>{h} said, "whoever paints the best picture will win a prize." || <oneday>{a} wanted to paint a picture for {a.his} {p}.
{a} loved colours, but {a.he} thought that {a.his} pictures were not good. || {a} took {a.his} brush and the {colour} paint.
"what shall I paint?" asked {a}. || {a} looked at the white paper for a long time.
>
{b} painted a fine horse. it looked almost real. || {b} painted a big castle with a hundred windows. || {a} looked at {b}'s picture. it was very neat.
"mine will never be so good," said {a}. || {a} tried to paint the same thing, but it looked wrong. || <feelsad>
then a drop of {colour} paint fell on the paper. || then {a} bumped the jar, and water ran over the picture. || a gust of wind blew leaves onto the wet paint.
"now it is ruined!" <cried> {a}. || "oh no, my picture!" <cried> {a}.
>
$X={h}
{h} came and looked at it. "wait," {h.he} said. "what do you see there?" || "do not throw it away," said {h}. "look again." || "a mistake can be a beginning," said {h}.
{a} looked again. the spot looked like a [bird|whale|cloud|sleeping cat|dancing bear]. || {a} turned the paper around. suddenly {a.he} saw a whole forest in it. || {a} tilted {a.his} head. it looked like a storm at sea.
<idea>
{a} began to paint with big, happy strokes. || {a} did not look at {b}'s picture anymore. {a.he} painted what {a.he} saw in {a.his} own head. || {a.he} added a little here and a little there.
soon the paper was full of colour and life. || it was wild and bright, and there was no other picture like it.
>
when {h} saw it, {h.he} was quiet for a moment. "it is wonderful," {h.he} said. || everyone stopped in front of {a}'s picture. || "how did you do that?" asked {b}. "I could never paint like that."
{b} won the prize for the neatest picture, and {a} won the prize for the most surprising one. || {a.his} {p} put the picture on the wall, where everyone could see it. || {h} put a golden star on both pictures.
<feelhappy>
# moving | h | * | morals_friend
$X={a.his} {p}
<oneday>{a.his} {p} said, "we are going to move to a new house." || {a}'s family was going to move to another town.
"but I like it here," said {a}. || {a} did not want to go. || "what about my friends?" asked {a}.
they packed everything into boxes, and {a} packed {a.his} {o.full}. || {a} put all {a.his} toys in a big box. || soon the rooms were empty, and every step made an echo.
"goodbye, old house," <whispered> {a}. || {a} said goodbye to {a.his} tree, {a.his} swing and {a.his} room. || {a} waved until the house was out of sight.
>
the new house was big and strange. || in the new house, everything smelled different. || the first night in the new house, {a} could not sleep.
<feelsad>
"give it a little time," said {a.his} {p}. || "I miss my old room too," said {a.his} {p}. "let us make this one nice." || "a home is where we are together," said {a.his} {p}.
they painted {a}'s room {colour}. || {a} put the {o} next to {a.his} bed, and it felt a little better. || they put up the old pictures, and {a} chose the place for each one.
>
the next day, {a} sat in front of the house. || a few days later, there was a knock at the door. || then something flew over the fence. it was a ball.
"hello!" said a voice. it was a {b.kind} named {b}. || a {b.kind} looked over the fence. "I am {b}," said the {b.kind}. "do you want to play?" || there stood a {b.kind} with a plate of {food}. "welcome," said {b}. "I live next door."
{a} was shy at first. || {a} did not know what to say. then {a.he} smiled. || "I am {a}," said {a}. "I am new here."
{b} showed {a} the [school|shop|park], the old tree and the secret path behind the garden. || together they went to {pl}, and {b} showed {a} everything. || they played until {a.his} {p} called them for supper.
"it is not so bad here," thought {a}. || that evening, the new house felt a little like home. || in the evening, {a} wrote a letter to {a.his} old friends about {b}.
# riddle | a | * | morals_try
$r,ans,w1=what has a neck but no head;a bottle;a snail|what has hands but cannot clap;a clock;a tree|what gets wetter the more it dries;a towel;the sun|what has teeth but cannot bite;a comb;an old dog|what goes up and never comes down;your age;a kite|what has many leaves but is not a tree;a book;a bush|what has one eye but cannot see;a needle;a mole|what runs all day but never gets tired;a river;a horse
<oneday>{a} and {b} wanted to cross the bridge to {pl}. || <oneday>{a} and {b} came to a gate in the middle of the forest.
$X={h}
there sat {h}. "if you want to pass, you must answer my riddle," {h.he} said. || but {h} stood in the way. "first you must answer a riddle," said {h}.
"we like riddles," said {b}. || "oh no, I am not good at riddles," said {a}. || "please ask us," said {a}.
"listen," said {h}. "{r}?" || {h} cleared {h.his} throat. "{r}?" {h.he} asked.
>
<think>
"is it {w1}?" asked {b}. "no," said {h}. || "I think it is {w1}," said {b}. {h} shook {h.his} head.
"this is too hard," said {b}. || they sat down and thought, and the sun climbed higher. || "you may try as often as you like," said {h}.
?they shared some {food} while they were thinking. || {a} walked up and down and said the riddle again and again.
"let us think about it step by step," said {a}. || "we must not give up," said {a}. "let us think of all the things at home."
>
suddenly {a} jumped up. "I know it!" {a.he} cried. "it is {ans}!" || then {a}'s eyes grew wide. "{ans}!" {a.he} said. "it is {ans}!" || "wait," said {a} slowly. "could it be {ans}?"
{h} clapped. "that is right!" {h.he} said. || {h} laughed. "very good! you may pass." || "well done," said {h}. "you did not give up."
<feelhappy>
"may we ask you one too?" asked {b}. {h} loved that idea. || "come back tomorrow," said {h}. "I have many more." || before they went on, {h} gave them some {food} as a prize.
then they crossed over and had a lovely time {pl.in}. || behind it lay {pl}, and it was more beautiful than they had dreamed.
the whole way home, they made up riddles of their own. || from that day on, {a} told a new riddle every morning.
# pet | h | * | morals_kind
$k,kn,want,look=puppy;Spot;ran after its own tail;one brown ear and one white ear|kitten;Mittens;played with a piece of string;four white paws|rabbit;Snow;ate a carrot;soft white fur|parrot;Kiwi;said hello to everyone;bright green wings|pony;Star;shook its mane;a white mark on its nose|turtle;Shelly;walked very slowly;a shiny shell
{a} wanted a pet more than anything in the world. || every day, {a} asked, "may I have a pet?"
"a pet is a lot of work," said {a.his} {p}. || "you must take care of a pet every day," said {a.his} {p}. "can you do that?"
"I will feed it and play with it every day," said {a}. || "I promise that I will take good care of it," said {a}.
>
<oneday>{a.his} {p} took {a.him} to {h}, who had many animals. || <oneday>{h} came by and said, "I have a {k} who needs a home."
in a corner sat a little {k} with {look}. || there was a {k} with {look}. it {want}.
it looked at {a}, and {a} looked at it. || "this one," <whispered> {a}. "this is my friend."
{a} called it {kn}. || "I will call you {kn}," said {a}.
>
at first, everything was fun. {kn} {want}, and {a} laughed. || every morning, {a} fed {kn} before breakfast. || the first week, {a} never left {kn} alone.
but one day, {a} wanted to play with {b} and forgot to feed {kn}. || then one rainy day, {a} did not want to get up. "someone else can feed {kn}," {a.he} thought. || but one evening, {a} forgot to close the door, and {kn} was gone.
when {a} came home, {kn} was not happy. || in the evening, {a} looked for {kn}, but {kn} was hiding. || {a} called and called. where was {kn}?
<feelsad>
"{kn} needs you," said {a.his} {p}. || "a friend is not a toy," said {a.his} {p}. || {a} remembered what {a.he} had promised.
>
at last {a} found {kn} under the [stairs|old table|garden bench]. || {a} took a lamp and looked everywhere, and at last {a.he} found {kn}. || {a} sat down on the floor and waited. after a while, {kn} came out.
"I am sorry, {kn}," said {a}. "I will never forget you again." || {a} held {kn} very gently. "I am sorry," {a.he} whispered.
{a} gave {kn} fresh water and the best food. || {a} brushed {kn} and made a soft bed.
from then on, {a} took care of {kn} every day, even when it rained. || {a} kept {a.his} promise, and {kn} grew healthy and happy. || now {a} and {kn} were always together.
# neighbour | ha | * | morals_kind
near {a} lived {h}. everyone said that {h} was grumpy. || {h} lived in a house with a high fence. nobody ever visited. || "do not go near {h}," said {b}. "{h.he} is always cross."
$why=was very lonely|could not see well anymore|had a bad leg and could not work|missed {h.his} old friends
$X={h}
<oneday>{a}'s {o} flew over the fence. || <oneday>{a} saw {h} trying to carry a heavy basket. || <oneday>{a} saw that {h}'s garden was full of weeds.
"I am afraid to go there," said {b}. || <feelscared> || "let us run away," <whispered> {b}.
but {a} went to the door and knocked. || "maybe {h} needs help," said {a}. || {a} took a deep breath and went closer.
>
"what do you want?" asked {h} in a deep voice. || the door opened slowly. "who is there?" said {h}.
"good morning," said {a}. "may I help you?" || "my name is {a}," said {a}. "can I do something for you?"
{h} looked surprised. "nobody has asked me that for a long time," {h.he} said. || {h} was silent. then {h.he} said, "yes, that would be kind."
then {a} understood. {h} was not grumpy. {h.he} {why}. || {h} told {a} that {h.he} {why}. || "you see," said {h}, "people think that I am cross, but it is not so." {h.he} {why}.
>
{a} pulled out the weeds and watered the flowers. || {a} carried the wood inside and swept the floor. || {a} and {b} worked all morning, and soon the garden was beautiful again.
soon {b} came to help too. || "{h} is really nice," {a} told {b}.
{h} brought out {food} and told them stories about [the sea|the old days|faraway lands|a clever fox|a flying ship]. || when the work was done, {h} gave them {food}. || {h} laughed, and it was a warm and merry laugh.
"come back whenever you like," said {h}. || "will you come again tomorrow?" asked {h}. "yes," said {a}. "every day!"
now the gate was always open, and there was always laughter in the garden. || from then on, {a} and {b} visited {h} every week. || {a} had found a new friend where nobody had looked for one.
# prank | ha | * | morals_friend
{a} loved to play tricks. || {a} thought that tricks were the funniest thing in the world.
$tr,res=hid behind a tree and jumped out with a roar;dropped the eggs {b.he} was carrying|put a frog in {b}'s bag;cried out and fell into the mud|tied {b}'s shoes together;fell down and hurt {b.his} knee|shouted that a wolf was coming;ran away so fast that {b.he} lost {b.his} hat|painted {b}'s chair with honey;could not get up and tore {b.his} new clothes
<oneday>{a} wanted to play a trick on {b}. || <oneday>{a} saw {b} coming along the path. "now I will have some fun," {a.he} thought.
{a} {tr}. || very quietly, {a} {tr}.
{b} was so surprised that {b.he} {res}. || poor {b}! {b.he} {res}.
{a} laughed out loud. "that was funny!" {a.he} said. || "it was only a joke!" said {a}, and laughed.
>
but {b} did not laugh. || but {b} began to cry. || {b} looked at {a} with tears in {b.his} eyes.
"that was not funny," said {b}, and went home. || "you hurt me," said {b}. "I do not want to play with you."
{a} stopped laughing. || suddenly {a} did not feel like laughing anymore. || {a} stood there all alone. it was very quiet.
"what happened?" asked {h}, who was passing by. || $nothing
"I played a trick on {b}," said {a}, "and now {b} is sad." || {a} told {a.his} {p} about the trick.
"a joke is only good when both can laugh," said {a.his} {p}. || "how would you feel?" asked {a.his} {p}. || "a good trick makes everyone happy," said {a.his} {p}. "can you think of one like that?"
>
<think>
<idea>
the next morning, {b} found a surprise in front of the door. || that night, {a} worked on a surprise for {b}. || {a} worked all evening, and in the morning everything was ready.
there was a basket of {food} and a card. "I am sorry. your friend, {a}," it said. || there was a {o.full} and a note with the word "sorry" on it. || a trail of paper hearts led {b} to {pl}, and there stood {a} with {food}.
{b} read it and smiled. || {b} had to smile. || "this is a much better trick," said {b}.
<sorry>
"I forgive you," said {b}. "but no more mean tricks!" || "let us be friends again," said {b}. || {b} laughed, and this time they both laughed together.
# star_lamp | ha | * | morals_brave
$X={h}
{h} looked after the lighthouse by the sea. || on a rock by the sea stood a lighthouse. {h} lived there. || every evening, {h} lit the lamp in the old tower.
{a} often came to help. || {a} loved to visit {h} and look at the big lamp. || "without the light, the boats cannot find their way home," said {h}.
>
<oneday>{h} was ill and could not get up. || <oneday>{h} went to town and did not come back in time. || <oneday>there was thick fog, and {h} had lost the key.
the sun was going down, and the boats were still out on the water. || it was getting dark, and the waves were high. || {a} looked out. {b}'s boat was still far away.
"who will light the lamp?" <asked> {a}. || "I must do it," said {a}. || "please, {a}," said {h}. "you know how to do it."
<feelscared>
there were a hundred steps, and it was very dark. || the wind howled around the tower. || {a} had never been up there alone at night.
>
{a} took a candle and began to climb. || step by step, {a} climbed up. || {a} counted the steps out loud. "one, two, three."
halfway up, the wind blew out the candle. || then the candle went out. || a bat flew past, and {a} almost fell.
?"I can do it," said {a}. || "{b} needs me," thought {a}. "I must go on."
{a.he} put a hand on the wall and went on in the dark. || slowly, {a.he} felt {a.his} way to the top.
at the top, {a} lit the great lamp. || at last {a.he} was at the top. with shaking fingers, {a} lit the lamp.
the light shone far out over the sea. || suddenly everything was bright. || a long golden beam went out over the waves.
>
the boats saw it and turned toward the harbour. || out on the water, {b} saw the light. "there is the way home!" {b.he} cried. || one after another, the boats came home.
"who lit the lamp?" asked {b}. "it was {a}," said {h}. || when {b} was back on land, {b.he} ran to {a} and hugged {a.him}. || everyone came to thank {a}.
"you are small," said {h}, "but your light was big." || "you saved us all," said {b}. || <feelhappy>
# cloud | ha | * | morals_patient
$thing,dest=a river;the sea|a cloud;the dry fields|a wooden boat;the end of the stream|a red balloon;the highest hill
<oneday>{a} asked {a.his} {p}, "where does [the river|the rain|the wind|the road] go?" || <oneday>{a} sat {pl.in} and looked at the path. "where does it end?" {a.he} wondered. || {a} always asked many questions. "where does the path go?" {a.he} asked one morning.
"why do you not find out?" said {a.his} {p}. "but be home for supper." || "nobody has ever told me," said {b}. "let us go and see." || "I do not know," said {a.his} {p}. "but {b} may go with you to see."
so {a} and {b} packed {food} and went off. || {a} took a stick and a bag with {food}, and {b} came along. || they put on their boots and off they went.
>
first they came to a field of [yellow|white|purple] flowers, where bees were humming. || first they passed {pl}, where they had been many times. || they walked past the last house and over a little bridge.
"hello, bee," said {a}. "where does the path go?" but the bee was too busy to answer. || there they met a snail. "where does the path go?" asked {b}. "I do not know yet," said the snail. "I left last year." || an old goat stood by the fence. "the path goes up," said the goat, "and then it goes down."
then they came to a hill. it was steep, but they did not stop. || next they came to a dark wood, and they held hands. || after that, the path went through a stream, and they took off their shoes.
?"are you tired?" asked {a}. "only my feet are," said {b}. || they stopped to rest and ate {food}. || they saw a deer and her fawn, and they stood very still.
>
$X={h}
at noon they met {h}. || on a bench of stone sat {h}. || behind the next bend stood {h}.
"where are you going?" asked {h}. "to the end of the path," said {a}. || "we want to see where the path ends," said {b}.
{h} laughed. "a path has no end," {h.he} said. "it only turns into another path." || "then look behind you," said {h}. "for those who come from the other side, your home is the end of the path." || "you will find something at the end," said {h}, "but you must go on to see it."
they went on, and at last they saw [the sea|a lake as blue as the sky|a valley full of lights]. || they climbed the last hill, and the whole world lay before them.
"how big the world is," <whispered> {a}. || "it was worth every step," said {b}. || they stood there without a word.
>
then they turned around, for it was almost time for supper. || the way home seemed much shorter. || when they came home, {food} was on the table.
"well, where does the path go?" asked {a.his} {p}. "it goes home," said {a}. || "did you find the end?" asked {a.his} {p}. "no," said {a}, "but we found the beginning." || {a} told {a.his} {p} about everything they had seen.
# bridge | a | * | morals_team
the old bridge over the stream was broken. || <oneday>the bridge over the river fell down. || after the heavy rain, the bridge was gone.
on the other side were the [sweetest berries|best nuts|warm fields]. || {b} lived on the other side, and {a} lived on this side. || now no one could get to {pl}.
"how shall I visit you now?" called {a}. || "I cannot come over!" called {b} from the other side. || {a} stood on the bank and looked at the wild water.
>
$X={b}
"I will build a new bridge," said {a}. || "someone must build a new bridge," said {h}. "but it is hard work."
{a} pulled a branch to the water, but it floated away. || {a} laid some sticks over the water, but the stream carried them off. || all day long {a} carried stones, but they sank in the deep water.
<feelsad>
"I am too small to do it alone," said {a}. || "what now?" called {b}. || {a} sat down on a stump.
{h} saw it. "why do you not ask for help?" {h.he} said. || "nobody can build a bridge alone," said {h}. "let us call the others."
>
so {a} called all the animals together. || {h} called in a loud voice, and from everywhere the animals came. || soon they all stood on the bank.
the beavers cut down a tall tree. the bears carried it to the water. || the bears rolled big stones into the stream, and the beavers laid logs on top. || the strong ones carried logs, and the small ones brought clay and moss.
the birds brought rope from the other side. || the mice tied the knots with their tiny paws. || the squirrels ran from one side to the other with the rope.
{a} told everyone where to go. || {a} filled the holes with moss and clay. || and {a} was everywhere at once.
>
in the evening, the bridge was done. || before the sun went down, the new bridge stood strong and firm.
{a} took the first step. it held! || "you go first," said {h} to {a}. || from one side came {a}, and from the other side came {b}. they met in the middle.
they hugged in the middle of the bridge. || everyone cheered, and they danced on the bridge until the moon came up.
"this bridge belongs to all of us," said {a}. || <feelhappy> || "each of us gave a little," said {h}, "and now look at it."
# nut_store | a | autumn | morals_patient
it was autumn, and {wx}. || autumn had come, and {wx}. || the days were getting shorter, and {wx}.
all the animals were gathering food for the winter. || "winter is coming," said {a.his} {p}. "we must gather food." || everyone was busy. {b} carried nuts, and {h} collected leaves.
but {a} wanted to play. || "there is plenty of time," said {a}, and lay down in the sun. || {a} danced in the falling leaves and did not work at all.
>
"come and help me," said {b}. "tomorrow," said {a}. || "you should gather some food," said {b}. || "have you filled your store?" asked {h}. "not yet," said {a}.
the next day, {a} played again, and the day after that too. || day after day, {a} found something more fun to do. || {a} chased leaves, made whistles and slept in the sun.
then, one night, the first snow fell. || one morning, everything was white. || then the cold wind came, and the last leaves fell.
{a} looked into {a.his} store. it was empty. || {a} was hungry, but there was nothing to eat. || {a} ran outside, but all the nuts and berries were gone.
<feelsad>
>
$X={b}
{a} was too proud to ask for help. || {a} sat in {a.his} cold {home} and thought about the autumn. || "I was so foolish," said {a}.
there was a knock. it was {b} with a basket. || then {b} came through the snow. "I thought you might be hungry," {b.he} said. || "{a}?" called a voice. it was {b}.
"I have enough for two," said {b}. || "take this," said {b}, and gave {a} a bag of nuts. || "come and stay with me this winter," said {b}.
<thank>
"next year I will help you," said {a}. || "I will make it good again," said {a}. || {a} was ashamed and happy at the same time.
>
all winter long, {a} told stories and sang songs by the fire, and {b} loved it. || in return, {a} swept the snow from {b}'s door every day. || they spent the winter together, and it was warm and merry.
and when the next autumn came, {a} was the first to gather nuts. || the next year, {a} worked from morning till evening, and both stores were full.
# toy_robot | h | * | morals_kind
{a} had a little toy robot named Bolt. || on {a}'s shelf sat an old tin robot named Bolt. || {h} once gave {a} a small robot named Bolt.
Bolt could walk, beep and blink with his {colour} light. || Bolt was {a}'s best toy. he could say, "beep, beep!"
<oneday>{a} got a new {o.full}. || <oneday>{b} came with a new {o.full}, and they played with it all day.
from then on, Bolt sat alone in the corner. || {a} put Bolt in a box and forgot him. || nobody played with Bolt anymore, and dust fell on his head.
>
"beep," said Bolt very softly. || at night, Bolt looked at the moon and felt lonely. || "maybe I am too old," thought Bolt.
one night, the lights went out. there was a storm, and it was very dark. || one evening, {a} was alone in {a.his} room when all the lights went out. || then a storm came, and the whole house was dark.
<feelscared>
"is anybody there?" <whispered> {a}. || {a} could not find the door. || {a} sat on the bed and did not dare to move.
"beep, beep," came from the corner. a small {colour} light went on. || then a small {colour} light began to shine. it was Bolt! || Bolt heard {a.him}. with all his strength, he switched on his light.
>
"Bolt!" <cried> {a}. || "my dear old Bolt," said {a}. || {a} took Bolt in {a.his} arms.
the little light shone until the storm was over. || with Bolt's light, {a} found the way to {a.his} {p}. || all night, Bolt kept watch beside the bed.
"I am sorry that I forgot you," said {a}. || <sorry> "I left you alone for so long." || "you did not forget me," said {a}, "even though I forgot you."
the next day, {a} cleaned Bolt and gave him a new battery. || {a} and {a.his} {p} oiled his wheels and painted him. || {b} helped {a} to mend Bolt's arm.
now Bolt had the best place of all, right next to {a}'s pillow. || from then on, all three of them played together. || "beep, beep!" said Bolt, and it sounded like a laugh.
"""

# a plain word for "I fell": used by the skill plot, kept neutral so that it fits every skill
FIXED = {"pastfall": "failed", "nothing": ""}


def split_top(text, sep):
    """Split at sep, but not inside [ ]."""
    out, depth, cur, i = [], 0, [], 0
    while i < len(text):
        c = text[i]
        if c == "[":
            depth += 1
        elif c == "]":
            depth -= 1
        if depth == 0 and text.startswith(sep, i):
            out.append("".join(cur))
            cur = []
            i += len(sep)
            continue
        cur.append(c)
        i += 1
    out.append("".join(cur))
    return out


def parse_plots():
    plots = []
    for line in PLOTS.strip().split("\n"):
        line = line.strip()
        if line.startswith("#"):
            name, worlds, wx, morals = [x.strip() for x in line[1:].split("|")]
            plots.append(dict(name=name, worlds=worlds, wx=wx, morals=morals, lines=[]))
        elif line:
            plots[-1]["lines"].append(line)
    return plots


LEXS = {k: split_top(v, "|") for k, v in LEX.items()}


class Story:
    def __init__(self, rng, plot):
        self.r = rng
        self.v = dict(FIXED)
        self.world = rng.choice(plot["worlds"])
        r = rng
        human = self.world == "h"
        ga = r.choice("mf")
        gb = ("f" if ga == "m" else "m") if r.random() < 0.75 else ga
        self.person("a", ga, human, None)
        self.person("b", gb, human, self.v["a"])
        hname, href, hg = r.choice(HELPERS_H if human else HELPERS_A)
        self.v["h"], self.v["h.the"] = hname, href
        self.prons("h", hg)
        rel, rg = r.choice(RELATIVES)
        self.v["p"] = rel
        self.prons("p", rg)
        places = PLACES_H if human else PLACES_A
        (p1, n1), (p2, n2) = r.sample(places, 2)
        self.v["pl"], self.v["pl.in"] = n1, p1 + " " + n1
        self.v["pl2"], self.v["pl2.in"] = n2, p2 + " " + n2
        noun, use, past = r.choice(OBJECTS)
        self.v["colour"] = r.choice(COLOURS)
        adj = r.choice(["little", "shiny", "small", "beautiful", "soft" if noun in ("blanket", "scarf", "hat", "doll") else "fine",
                        "lovely", "old"])
        c = r.choice(COLOURS)
        self.v["o"] = noun
        self.v["o.full"] = r.choice([c, adj, adj + " " + c]) + " " + noun
        self.v["o.use"], self.v["o.past"] = use, past
        self.v["food"] = r.choice(FOODS)
        self.v["#sing"] = r.choice(["singing", "laughing", "arm in arm", "with muddy shoes and happy faces"])
        wx = plot["wx"]
        if wx == "*":
            wx = r.choice(["sunny", "sunny", "sunny", "autumn"])
        self.v["wx"] = self.expand(r.choice(LEXS[wx]))
        if human:
            self.v["livein"] = r.choice([
                "in a small village", "in a little house by the sea", "in a town by the river",
                "in a cottage near the woods", "on a farm in the hills", "in a quiet street",
                "in a tall house with a red roof", "at the edge of a small town", "in a house with a green door",
                "near the old mill", "in a village in the mountains"])
        else:
            self.v["livein"] = r.choice([
                "in a deep forest", "in a green valley", "at the edge of the wood", "by a quiet pond",
                "near a little stream", "in a {home} under an old tree", "in a {home} on the hill",
                "in a sunny meadow", "behind the blackberry bushes", "in the middle of a big forest",
                "not far from the river"])
        self.v["m"] = self.expand(r.choice(LEXS[plot["morals"]]))
        self.v["X"] = self.v["b"]

    def prons(self, who, g):
        for k, w in PRON[g].items():
            self.v[who + "." + k] = w

    def person(self, who, g, human, taken):
        r = self.r
        pool = (GIRLS if g == "f" else BOYS) if human else (ANIMAL_F if g == "f" else ANIMAL_M)
        name = r.choice(pool)
        while name == taken:
            name = r.choice(pool)
        if human:
            kind = "girl" if g == "f" else "boy"
            home = r.choice(["house", "cottage", "home"])
        else:
            kind = r.choice(list(KINDS))
            while kind == self.v.get("a.kind"):
                kind = r.choice(list(KINDS))
            home = KINDS[kind]
        self.v[who], self.v[who + ".kind"], self.v[who + ".the"] = name, kind, "the " + kind
        if who == "a":
            self.v["home"] = home
        self.prons(who, g)

    SLOT = re.compile(r"\{([^{}]+)\}")
    LEXREF = re.compile(r"<([a-z_0-9]+)>")
    ALT = re.compile(r"\[([^\[\]]*)\]")

    def expand(self, t):
        # choices first from the inside out, then phrases, then slots, until nothing is left
        for _ in range(40):
            n = self.ALT.sub(lambda m: self.r.choice(m.group(1).split("|")), t)
            n = self.LEXREF.sub(lambda m: self.r.choice(LEXS[m.group(1)]), n, count=1)
            if n == t:
                n = self.SLOT.sub(lambda m: self.v[m.group(1)], t)
                if n == t:
                    return t
            t = n
        raise ValueError(t)

    def assign(self, line):
        names, rows = line[1:].split("=", 1)
        row = self.r.choice(split_top(rows, "|"))
        names = names.split(",")
        vals = row.split(";")
        assert len(names) == len(vals), line
        for n, v in zip(names, vals):
            self.v[n] = self.expand(v)
        if "X" in names:   # keep the pronouns of whoever X is
            who = {"{h}": "h", "{b}": "b"}.get(row, "p")
            for k in PRON["m"]:
                self.v["X." + k] = self.v[who + "." + k]

    def tell(self, plot):
        r = self.r
        paras, cur = [], []
        head = r.choice(["open1", "open1", "open2"])
        # plots that bring in their own first meeting with b must not name b before
        forms = [x for x in LEXS[head]]
        nob = plot["name"] in ("new_friend", "moving", "letter")
        t = r.choice(forms)
        while nob and "{b}" in t:
            t = r.choice(forms)
        cur.append(self.expand(t))
        self.livein_used = self.v["livein"] in cur[0]
        met_b = self.v["b"] in cur[0]
        if head == "open1" and r.random() < 0.8:
            t = r.choice(LEXS["open1b"])
            while ("{b}" in t and nob) or ("{home}" in t and (self.livein_used or plot["name"] == "moving")) or ("{p}" in t and self.v["p"] in cur[0]):
                t = r.choice(LEXS["open1b"])
            cur.append(self.expand(t))
            met_b = met_b or self.v["b"] in cur[-1]
        first_b = not met_b and not nob and plot["name"] != "quarrel"
        for line in plot["lines"]:
            if line.startswith("$") and "=" in line.split(" ")[0]:
                self.assign(line)
                continue
            if line == ">":
                if len(cur) >= 2:
                    paras.append(cur)
                    cur = []
                continue
            if line.startswith("?"):
                if r.random() < 0.45:
                    continue
                line = line[1:]
            t = r.choice(split_top(line, "||")).strip()
            if t == "$nothing":
                continue
            if head == "open2":
                t = t.replace("<oneday>", "<thatday>")
            s = self.expand(t).strip()
            if s[0].isalpha():
                s = s[0].upper() + s[1:]
            if first_b and re.search(r"\b" + self.v["b"] + r"\b", s):
                first_b = False
                # introduce the friend once, at the first mention in the story's own words
                s = self.introduce(s)
            elif cur:
                s = self.pronoun(cur[-1], s)
            cur.append(s)
        if r.random() < 0.6:
            cur.append(self.expand(r.choice(LEXS["learned"])))
        told = " ".join(" ".join(p) for p in paras + [cur])
        end = r.choice(LEXS["end"])
        while "<" in end:               # no ending with the friend in a story without one
            t = self.LEXREF.sub(lambda m: r.choice(LEXS[m.group(1)]), end, count=1)
            if "{b}" not in t or self.v["b"] in told:
                end = t
        cur.append(re.sub(r"(?<=[.] )[a-z]", lambda m: m.group(0).upper(), self.expand(end)))
        cur[-2:] = [x[0].upper() + x[1:] for x in cur[-2:]]
        paras.append(cur)
        return "\n\n".join(self.polish(" ".join(p)) for p in paras)

    def pronoun(self, prev, s):
        """Begin a sentence with "he" or "she" where the sentence before is about the hero alone."""
        a, he = self.v["a"], self.v["a.he"]
        if not re.match(a + r" [a-z]+[a-z ]", s) or re.match(a + r" (and|the) ", s) or self.r.random() < 0.25:
            return s
        outside = " ".join(prev.split('"')[0::2])
        words = re.findall(r"[A-Za-z]+", outside)
        mine = a in words or he in [w.lower() for w in words]
        for who in "bhp":
            if self.v[who + ".he"] == he and self.v[who] in outside:
                return s
        if not mine or (he == "he" and "Bolt" in outside):
            return s
        return he[0].upper() + he[1:] + s[len(a):]

    def introduce(self, s):
        name, kind = self.v["b"], self.v["b.kind"]
        q = s.split('"')
        for i in range(0, len(q), 2):   # only outside of quotation marks
            m = re.search(r"\b" + name + r"\b(?!'s)(?=[ .,!?])", q[i])
            if m:
                q[i] = q[i][:m.start()] + self.r.choice(["{his} friend {n}", "{his} friend {n}", "{n} the {k}" if self.world == "a" else "{his} friend {n}"]).format(
                    n=name, k=kind, his=self.v["a"] + "'s") + q[i][m.end():]
                s2 = '"'.join(q)
                # "Tom and Tom's friend Anna" -> "Tom and his friend Anna"
                a = self.v["a"]
                if a in s2.split(a + "'s friend")[0]:
                    s2 = s2.replace(a + "'s friend", self.v["a.his"] + " friend", 1)
                return s2
        return s

    VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU](?!ne\b|nce\b))")

    @classmethod
    def polish(cls, s):
        s = re.sub(r" +", " ", s).strip()
        s = s.replace('"."', '"').replace('".', '."') if '".' in s else s
        s = cls.VOWEL.sub(r"\1n ", s)
        s = re.sub(r"\bmost (kind|shy|brave|quiet|friendly|lively|bright|merry|clever|gentle)\b",
                   lambda m: {"kind": "kindest", "shy": "shyest", "brave": "bravest", "quiet": "quietest", "friendly": "friendliest",
                              "lively": "liveliest", "bright": "brightest", "merry": "merriest", "clever": "cleverest", "gentle": "gentlest"}[m.group(1)], s)
        # capitals: at the start, after . ! ? and at the start of a quotation that begins a sentence
        out = list(s)
        inq = broken = False     # broken: a quotation that ended with a comma goes on later
        cap = True
        for i, c in enumerate(out):
            if c == '"':
                inq = not inq
                if inq:
                    cap = not (broken and i > 1 and out[i - 2] == ",")
                    broken = False
                else:
                    broken = out[i - 1] == ","
                    cap = out[i - 1] == "."
            elif c in ".!?":
                abbr = "".join(out[max(0, i - 2):i]) == "Mr" or "".join(out[max(0, i - 3):i]) == "Mrs"
                if not abbr and i + 1 < len(out) and out[i + 1] == " ":
                    cap = True
                    if not inq:
                        broken = False
            elif c.isalpha():
                if cap:
                    out[i] = c.upper()
                cap = False
        return "".join(out)


def generate(seed, chars):
    rng = random.Random(seed)
    plots = parse_plots()
    total, seen = 0, set()
    while total < chars:
        plot = rng.choice(plots)
        s = Story(rng, plot)
        text = s.tell(plot)
        if text in seen:
            continue
        seen.add(text)
        total += len(text)
        yield plot["name"], text


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("out")
    ap.add_argument("--seed", type=int, default=20240607)
    ap.add_argument("--chars", type=int, default=16_000_000)
    form = ap.add_mutually_exclusive_group()
    form.add_argument("--jsonl", action="store_true", help="write one JSON object per story")
    form.add_argument("--show", action="store_true", help="print the name of the plot above each story")
    a = ap.parse_args()
    n = 0
    with open(a.out, "w", encoding="utf-8", newline="\n") as f:
        for name, text in generate(a.seed, a.chars):
            if a.show:
                f.write("### " + name + "\n")
            if a.jsonl:
                f.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            else:
                f.write(text + "\n<|endoftext|>\n")
            n += 1
    print("%d stories" % n)


if __name__ == "__main__":
    main()

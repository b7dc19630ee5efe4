"""Short stories of make_dialogues.py: four to eight sentences about what was asked for.

Fields of a plot: {h} the hero, {he} {his} {him} its pronouns (capital: {He} {His}), {k} what it is, {f} {fk} {fhe} {fhis}
the same of a friend, {o} a thing, {p} a place with its preposition ("in the forest"). [a|b] is a choice.
A plot that has no {o} or {p} is not told when one of them was asked for.
"""
from dialogue_words import (BOYS, GIRLS, HE, HEROES, HOBBIES, PETS, SHE, THINGS, a, cap, ex, invented, word)

FEMALE = set("witch queen girl".split())
MALE = set("king knight boy giant".split())
PEOPLE = set("giant witch king queen knight boy girl child farmer baker gardener teacher sailor robot".split())
PLACES = ("in the forest|in the garden|by the river|on the hill|by the old mill|in the meadow|by the lake|in the village|"
          "on the farm|in the valley|by the pond|on the beach|in the woods").split("|")

PLOTS = [s.strip().split("\n") for s in """
{open}
{He} found {ao} {p}.
"[Whose is this?|Who has lost this?]" asked {h}.
{He} [walked from door to door|asked everyone] until {he} met {f}, a {fk}.
"That is my {o}!" cried {f}. "I [looked for it all day|have looked for it everywhere]."
{h} gave the {o} back, and {f} [was very happy|jumped for joy].
From that day on {h} and {f} were [good|the best of] friends.
---
{open}
[One morning|One day] {h} [could not find|had lost] {his} {o}.
{He} looked under the bed and behind the door, but the {o} was not there.
Then {f} the {fk} came by and said, "[I will help you|Let us look together]."
They looked {p}, and there it was, [under a leaf|behind a stone|in the grass]!
"Thank you, {f}," said {h}. "Two [find|see] more than one."
---
{open}
{h} lived {p} and was often [alone|lonely].
[One evening|One day] {f}, a little {fk}, knocked at the door.
"[I am cold|It is raining and I am wet]," said {f}. "May I come in?"
{h} made a warm soup, and they talked [all night|until the moon was high].
In the morning {f} said, "I [would like to|want to] stay."
So {h} was never lonely again.
---
{open}
{h} was afraid of the dark.
One night {he} heard a strange noise {p}.
{He} took a [lamp|candle] and went out with a beating heart.
There sat {f}, a small {fk}, who had lost the way home.
{h} [took|brought] {f} home and forgot to be afraid.
"You are very brave," said {f}.
---
{open}
[One spring day|In spring] {h} put a small seed into the ground {p}.
Every day {he} gave it water, but nothing [happened|came up].
"You must wait," said {f} the {fk}. "[Good things|Seeds] need time."
{h} waited, and after many days a green leaf came up.
In summer there stood a [tall|beautiful] flower, taller than {h}.
"Now I know how to wait," said {h}, and {f} smiled.
---
{open}
{h} wanted to be the fastest of all.
"[Nobody|No one] can run like me," {he} said every day.
So {f}, a slow {fk}, said, "Let us race [to the old tree|to the bridge]."
{h} ran [off|ahead], sat down {p} and fell asleep.
{f} went on, step by step, and came first.
"[I was too proud|I have learned something]," said {h}, and they both laughed.
---
{open}
{h} dreamed of the [sea|stars|big wide world].
[One day|One morning] {he} packed {his} {o} and set out.
{He} walked over hills and through dark woods, and {p} {he} met {f}, a friendly {fk}.
"Where are you going?" asked {f}. "May I come with you?"
Together they saw many wonderful things.
But in the end {h} said, "Home is the best place of all," and they went [back|home].
---
{open}
It was {his} birthday, but nobody [seemed to know|said a word].
{h} sat {p} and was very sad.
Then {he} heard a [song|laugh], and {f} the {fk} came with all {his} friends.
"Happy birthday, {h}!" they called, and {f} gave {him} {ao}.
They [sang and danced|ate cake and sang] until the sun went down.
It was the best day of the year.
---
{open}
{h} had a [fine|beautiful] {o}, and {he} never shared it with anyone.
[One day|One afternoon] {f}, a {fk}, asked, "May I play with your {o}, too?"
"No, it is mine!" said {h}, and {f} went away.
But playing alone {p} was [no fun|not much fun].
So {h} ran after {f} and said, "I am sorry. Let us play together."
They played until evening, and it was much more fun.
---
{open}
[One winter|In winter] the snow was deep, and {h} had nothing to eat.
{He} went to look for food {p}.
There {he} met {f}, a {fk}, who was hungry, too.
{h} found [one last apple|a small piece of bread] and gave half of it to {f}.
When spring came, {f} brought a basket full of [berries|apples] to {h}.
"You helped me when I needed it," said {f}.
---
{open}
{h} wanted to learn [{hob}|how to swim|how to sing|how to dance].
At first {he} was not good at it, and everybody laughed.
Only {f} the {fk} said, "Try again. You can do it."
{h} tried every day {p}, and every day it went a little better.
After a year everybody came to watch, and nobody laughed.
"I am proud of you," said {f}.
---
{open}
[One night|One evening] there was a great storm, and the rain fell [hard|for hours].
The water rose {p}, and {f} the {fk} could not get out.
"Help!" cried {f}.
{h} took a long rope and threw it to {f}.
{He} pulled and pulled until {f} was safe.
"You saved me," said {f}. {h} only smiled and made some tea.
---
{open}
{h} found {ao} {p}, and it began to [speak|shine].
"I am a magic {o}," it said. "You have one wish."
{h} thought [for a long time|long and hard].
"I wish that my friend {f} is well again," {he} said.
At once {f}, who was a sick {fk}, jumped out of bed and laughed.
The {o} never spoke again, but {h} was happy.
---
{open}
Every day {h} told everyone that a wolf was coming, but it was never true.
[One day|Then] a real wolf came {p}, and nobody believed {him}.
Only {f}, a clever {fk}, heard {him} call and came to help.
{f} made a loud noise, and the wolf ran away.
"From now on I will always tell the truth," said {h}.
And {he} did.
---
{open}
{h} [baked|made] a big cake and put it {p}.
When {he} came back, the cake was gone!
{h} followed the crumbs and found {f}, a hungry {fk}.
"I am sorry," said {f}. "It smelled so good."
"[Next time just ask|You only had to ask]," said {h}, and they baked a new cake together.
It was even better than the first one.
---
{open}
{h} wished to have wings and fly over the clouds.
"I can help you," said {f} the {fk}, who had {ao}.
They built a small machine from wood and paper and tied the {o} to it.
They [pushed it up|carried it to] the highest hill and jumped.
For a moment {h} flew, and then {he} landed softly {p}.
"Once more!" cried {h}, and {f} laughed.
""".split("---\n")]

OPEN = ["Once upon a time there was {aadjk} named {h}.", "There once was {aadjk} called {h}.",
        "{h} was {aadjk}.", "Once there lived {aadjk} whose name was {h}."]
ADJ = "little small young kind clever old shy happy brave curious lazy quiet funny tiny friendly".split()
ASK = """[Tell me|Please tell me|Can you tell me|Could you tell me|I want to hear|I would like|Write|Write me|Can you write|
Give me|Make up|I'd like to hear|Do you know] [a|a short|a little|a nice|a new|a small] [story|story|story|tale]""".replace("\n", "")


BEASTS = HEROES[:HEROES.index("dragon")]


def gender(name):
    """Of a hero; of names that are nobody's by their last letter."""
    if name in GIRLS or name in BOYS:
        return "f" if name in GIRLS else "m"
    return "f" if name[-1] in "aey" else "m"


def name_for(r, kind, new=0.03):
    """A name for one of that kind: a person's, an animal's, or one that nobody has."""
    while True:
        name = invented(r) if r.random() < new else r.choice(PETS)
        if kind in PEOPLE or r.random() < 0.4:
            name = r.choice(GIRLS + BOYS)
        g = gender(name)
        if not (g == "m" and kind in FEMALE) and not (g == "f" and kind in MALE):
            return name


class Story:
    """A hero, what was asked for, and the text; facts answers questions about it."""

    def __init__(self, r, topic):
        self.r = r
        v = self.v = {}
        kind = topic.get("k") or word(r.choice(HEROES))
        if topic.get("h") and "k" not in topic:     # a name alone: a person
            kind = "girl" if gender(topic["h"]) == "f" else "boy"
        v["k"], v["h"] = kind, topic.get("h") or name_for(r, kind)
        g = gender(v["h"])
        v.update(HE if g == "m" else SHE)
        v["fk"] = topic.get("fk") or r.choice([w for w in BEASTS if w != kind])
        while True:
            v["f"] = name_for(r, v["fk"])
            if v["f"] != v["h"]:
                break
        v["o"], v["p"] = topic.get("o") or r.choice(THINGS), topic.get("p") or r.choice(PLACES)
        v["hob"] = r.choice(HOBBIES[:12])
        v["ao"], v["aadjk"] = a(v["o"]), a((topic.get("adj") or r.choice(ADJ)) + " " + kind)
        v["He"], v["His"] = cap(v["he"]), cap(v["his"])
        need = [x for x in ("o", "p") if topic.get(x)]
        plots = [p for p in PLOTS if all(any("{%s}" % x in s or "{a%s}" % x in s for s in p) for x in need)]
        plot = r.choice(plots)
        self.lines = [cap(ex(r, r.choice(OPEN) if s == "{open}" else s, **v)) for s in plot]
        for i, s in enumerate(self.lines):
            self.lines[i] = s.replace(" a " + v["fk"], " " + a(v["fk"])) if v["fk"][0] in "aeiou" else s
        self.plot = plot

    def text(self):
        return " ".join(self.lines)

    def facts(self):
        """Questions about the story with their answers."""
        v, whole = self.v, " ".join(self.plot)
        q = [("[What is|What was] the name of the {k}?|What is the {k} called?|What was the {k}'s name?", "The {k} is called {h}."),
             ("Who is {h}?|What is {h}?|What kind of creature is {h}?", "{h} is a {k}."),
             ("Who is {f}?|What is {f}?|Who was {f}?", "{f} is a {fk}."),
             ("Who is the hero of the story?|Who is the story about?", "The story is about {h}.")]
        if "found {ao}" in whole:
            q.append(("What did {h} find?|What did the {k} find?", "{h} found {ao}."))
        if "lost {his}" in whole:
            q.append(("What did {h} lose?|What had {h} lost?", "{h} lost {his} {o}."))
        if "{h} lived {p}" in whole:
            q.append(("Where did {h} live?|Where did the {k} live?", "{h} lived {p}."))
        r = self.r
        out = []
        for ask, answer in q:
            s = answer.format(**v).replace(" a " + v["k"], " " + a(v["k"])).replace(" a " + v["fk"], " " + a(v["fk"]))
            out.append((ex(r, r.choice(self.whole(ask)), **v), s))
        return out

    @staticmethod
    def whole(s):
        """Splits at | outside of brackets."""
        out, depth = [""], 0
        for c in s:
            depth += (c == "[") - (c == "]")
            if c == "|" and not depth:
                out.append("")
            else:
                out[-1] += c
        return out


def request(r):
    """A request, and the topic that it names."""
    x = r.random()
    ask = ex(r, ASK)
    if x < 0.1:
        return r.choice([ask, ask, "A story", "Story time", "I want a story", "Tell a story"]), {}
    kind = invented(r).lower() if r.random() < 0.03 else word(r.choice(HEROES))
    if x < 0.42:
        if r.random() < 0.25:
            adj = r.choice(ADJ)
            return "%s about %s %s" % (ask, a(adj), kind), {"k": kind, "adj": adj}
        return "%s about %s" % (ask, r.choice([a(kind), a(kind), "the " + kind])), {"k": kind}
    name = name_for(r, kind, 0.05)
    if x < 0.62:
        return "%s about %s %s %s" % (ask, a(kind), r.choice(["named", "called", "whose name is"]), name), \
            {"k": kind, "h": name}
    if x < 0.7:
        name = r.choice(GIRLS + BOYS)
        return "%s about %s" % (ask, name), {"h": name}
    if x < 0.8:
        o = invented(r).lower() if r.random() < 0.03 else r.choice(THINGS)
        return "%s about %s" % (ask, r.choice([a(o), "a lost " + o, "a magic " + o, "the " + o])), {"o": o}
    if x < 0.88:
        p = r.choice(PLACES)
        return "%s that happens %s" % (ask, p) if r.random() < 0.5 else "%s set %s" % (ask, p), {"p": p}
    other = word(r.choice(BEASTS))
    if other == kind or r.random() < 0.4:
        p = r.choice(PLACES)
        return "%s about %s %s" % (ask, a(kind), p), {"k": kind, "p": p}
    if r.random() < 0.4:
        o = r.choice(THINGS)
        return "%s about %s and %s" % (ask, a(kind), a(o)), {"k": kind, "o": o}
    return "%s about %s and %s" % (ask, a(kind), a(other)), {"k": kind, "fk": other}

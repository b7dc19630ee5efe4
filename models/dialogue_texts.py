"""Short texts and questions about them, for make_dialogues.py.

A Text is two to five small facts about people and things, each with questions whose answers stand in it; some questions
ask for what it does not say. An answer is a whole sentence, and its one word for those who want no more.
"""
from dialogue_stories import gender
from dialogue_words import (ANIMALS, BOYS, COLOURS, DAYS, FOODS, GIRLS, GO, HE, HOBBIES, JOBS, MONTHS, NUMBERS, OBJECTS,
                            PETS, PLACES, PLURALS, SHE, SPOTS, TOWNS, a, cap, ex, invented, listing, word)

UNSAID = "The text does not say that."
LACK = {"age": "How old is {w}?", "lives": "Where does {w} live?", "likes": "What does {w} like?", "went": "Where did {w} go?",
        "pet": "What is {w}'s {k} called?", "where": "Where is {w} [|now]?", "job": "What is {w}'s job?",
        "many": "How many {p} does {w} have?", "found": "What did {w} find?", "ate": "What did {w} eat?"}
HIDE = {"has": "Where is the {o}?", "bought": "What [colour|color] is the {o}?", "thing_at": "What [colour|color] is the {o}?",
        "found": "What [colour|color] is the {o}?", "gave": "What [colour|color] is the {o}?"}


class Text:
    def __init__(self, r, n=None):
        self.r = r
        self.used = set()
        self.lines, self.asks = [], []   # asks: question, answer, short answer
        n = n or r.choice([1, 1, 2, 2, 2, 3, 3, 4, 5])
        kinds = [self.has, self.has, self.where, self.thing_at, self.many, self.pet, self.likes, self.age, self.went,
                 self.lives, self.job, self.gave, self.found, self.ate, self.opens, self.bought, self.pair, self.tall]
        if r.random() < 0.35:            # all facts of one kind: the right one must be chosen
            kinds = [r.choice(kinds)]
        self.known, self.things = {}, {}   # what is said of whom and of what
        for _ in range(n):
            fact = r.choice(kinds)
            self.fact = fact.__name__
            fact()
        order = list(range(len(self.lines)))
        r.shuffle(order)
        self.lines = [self.lines[i] for i in order]
        self.asks = [self.asks[i] for i in order]

    def text(self):
        return " ".join(self.lines)

    # -- parts: each is there once in a text, so that one answer is right

    def one(self, of, make=None):
        for _ in range(200):
            x = make() if make else self.r.choice(of)
            key = x if isinstance(x, str) else " ".join(x)
            if key not in self.used:
                self.used.add(key)
                return x
        raise ValueError("no word is left")

    def who(self):
        r = self.r
        x = r.random()
        if x < 0.05:
            return self.one(None, lambda: invented(r))
        if x < 0.1:
            return "the " + self.one("teacher farmer baker doctor king queen cat dog boy girl fox pirate nurse painter "
                                     "captain witch giant sailor bear wizard man woman".split())
        return self.one(GIRLS + BOYS)

    def noun(self, of):
        r = self.r
        if r.random() < 0.03:
            return self.one(None, lambda: invented(r).lower())
        return word(self.one(of))

    def put(self, line, asks, **v):
        r = self.r
        for k in list(v):
            if isinstance(v[k], str):
                v["C" + k] = cap(v[k])
        self.lines.append(cap(ex(r, line, **v)))
        if "w" in v:
            self.known.setdefault(v["w"], set()).add(self.fact)
        if "o" in v and self.fact in HIDE:
            self.things[v["o"]] = self.fact
        self.asks.append([(cap(ex(r, q, **v)), cap(ex(r, s, **v)), ex(r, w, **v)) for q, s, w in asks])

    def more(self, w):
        """A second sentence that says "she" of the same person."""
        r = self.r
        if w.startswith("the ") or r.random() < 0.65:
            return
        self.known[w] |= {"likes", "age", "lives"}
        line, self.lines[-1] = self.lines[-1], ""
        self.asks.append([])
        v = HE if gender(w) == "m" else SHE
        self.put(*self.r.choice([
            ("{He} likes {f}.", [("What does {w} like?", "{w} likes {f}.", "{f}"), ("Who likes {f}?", "{w} likes {f}.", "{w}")]),
            ("{He} is {n} years old.", [("How old is {w}?", "{w} is {n} years old.", "{n}")]),
            ("{He} lives in {t}.", [("Where does {w} live?", "{w} lives in {t}.", "in {t}"),
                                    ("Who lives in {t}?", "{w} lives in {t}.", "{w}")]),
            ("{He} has {ao}, too.", [("What does {w} have?", "{w} has {ao}.", "{ao}"), ("Who has {ao}?", "{w} has {ao}.", "{w}")]),
        ]), w=w, He=cap(v["he"]), f=word(self.one(FOODS)), n=self.number(3, 20), t=self.one(TOWNS), ao=a(self.one(OBJECTS)))
        second, asks = self.lines.pop(), self.asks.pop()
        self.asks.pop()
        self.lines[-1] = line + " " + second
        self.asks[-1] = [x for x in self.asks[-1] if not x[0].startswith("What does " + w)] + asks

    def number(self, low=2, high=12):
        n = self.r.randint(low, high)
        return NUMBERS[n] if n <= 20 and self.r.random() < 0.9 else str(n)

    # -- facts

    def has(self):
        r = self.r
        o, c, w = self.noun(OBJECTS), r.choice(COLOURS), self.who()
        other = r.choice([x for x in COLOURS if x != c])
        self.put("{w} [has|has|owns|has got] {ac} {o}.",
                 [("[What|Which] [colour|color|colour] [is|has] {w}'s {o}?", "{w}'s {o} is {c}.", "{c}"),
                  ("What [colour|color] is the {o}?", "The {o} is {c}.", "{c}"),
                  ("Who [has|owns] [a|the|the {c}] {o}?", "{w} has {ac} {o}.", "{w}"),
                  ("What does {w} have?", "{w} has {ac} {o}.", "{ac} {o}"),
                  ("Whose {o} is {c}?", "{w}'s {o} is {c}.", "{w}"),
                  ("Is {w}'s {o} {c}?", "Yes, {w}'s {o} is {c}.", "yes"),
                  ("Is [{w}'s|the] {o} {x}?", "No, the {o} is {c}.", "no"),
                  ("Does {w} have {ao}?", "Yes, {w} has {ac} {o}.", "yes")],
                 w=w, o=o, c=c, x=other, ao=a(o), ac=a(c))
        self.more(w)

    def where(self):
        r = self.r
        w, (i, p) = self.who(), self.one(PLACES)
        self.put("{w} [is|is|is sitting|is waiting|is playing] {p}.",
                 [("Where is {w}?", "{w} is {p}.", "{p}"),
                  ("Where is {w} [now|right now]?", "{w} is {p}.", "{p}"),
                  ("Where can I find {w}?", "{w} is {p}.", "{p}"),
                  ("Who is {p}?", "{w} is {p}.", "{w}"),
                  ("Is {w} {p}?", "Yes, {w} is {p}.", "yes"),
                  ("Is {w} {x}?", "No, {w} is {p}.", "no")],
                 w=w, p=i + " " + p, x=" ".join(self.one(PLACES)))
        self.more(w)

    def thing_at(self):
        o, (i, p) = self.noun(OBJECTS), self.one(SPOTS)
        self.put("The {o} [is|is|lies] {p}.",
                 [("Where is the {o}?", "The {o} is {p}.", "{p}"),
                  ("Where is the {o}?", "The {o} is {p}.", "{p}"),
                  ("Where can I find the {o}?", "The {o} is {p}.", "{p}"),
                  ("What [is|lies] {p}?", "The {o} is {p}.", "the {o}"),
                  ("Is the {o} {x}?", "No, the {o} is {p}.", "no"),
                  ("Is the {o} {p}?", "Yes, the {o} is {p}.", "yes")],
                 o=o, p=i + " " + p, x=" ".join(self.one(SPOTS)))

    def many(self):
        r = self.r
        w, n, o = self.who(), self.number(), self.one(PLURALS)
        self.put("{w} [has|has|has|has got|sees|counts] {n} {o}.",
                 [("How many {o} does {w} have?", "{w} has {n} {o}.", "{n}"),
                  ("How many {o} does {w} have?", "{w} has {n} {o}.", "{n}"),
                  ("How many {o} are there?", "There are {n} {o}.", "{n}"),
                  ("Who has {n} {o}?", "{w} has {n} {o}.", "{w}"),
                  ("Who has [|the] {o}?", "{w} has {n} {o}.", "{w}"),
                  ("What does {w} have?", "{w} has {n} {o}.", "{n} {o}")],
                 w=w, n=n, o=o)

    def pet(self):
        r = self.r
        w, k, n = self.who(), self.noun(ANIMALS), self.one(None, lambda: r.choice(PETS) if r.random() < 0.95 else invented(r))
        self.put(r.choice(["{w} has {ak} [named|called] {n}.", "{w}'s {k} is [called|named] {n}."]),
                 [("What is the name of {w}'s {k}?", "{w}'s {k} is called {n}.", "{n}"),
                  ("What is {w}'s {k} called?", "{w}'s {k} is called {n}.", "{n}"),
                  ("[What is the name of the {k}?|What is the {k} called?]", "The {k} is called {n}.", "{n}"),
                  ("Who is {n}?", "{n} is {w}'s {k}.", "{w}'s {k}"),
                  ("What [animal|kind of animal] is {n}?", "{n} is {ak}.", "{ak}"),
                  ("Who has {ak}?", "{w} has {ak}.", "{w}"),
                  ("What [animal|pet] does {w} have?", "{w} has {ak}.", "{ak}"),
                  ("Whose {k} is {n}?", "{n} is {w}'s {k}.", "{w}'s")],
                 w=w, k=k, n=n, ak=a(k))
        self.more(w)

    def likes(self):
        r = self.r
        w, o = self.who(), word(self.one(FOODS if r.random() < 0.6 else HOBBIES))
        self.put("{w} [likes|likes|loves] {o}.",
                 [("What does {w} [like|like|love]?", "{w} likes {o}.", "{o}"),
                  ("What does {w} like?", "{w} likes {o}.", "{o}"),
                  ("Who [likes|loves] {o}?", "{w} likes {o}.", "{w}"),
                  ("Does {w} like {o}?", "Yes, {w} likes {o}.", "yes")],
                 w=w, o=o)

    def age(self):
        w, n = self.who(), self.number(3, 20)
        self.put("{w} is {n} years old.",
                 [("How old is {w}?", "{w} is {n} years old.", "{n}"),
                  ("What is {w}'s age?", "{w} is {n} years old.", "{n}"),
                  ("How old is {w}?", "{w} is {n} years old.", "{n}"),
                  ("Who is {n} years old?", "{w} is {n} years old.", "{w}")],
                 w=w, n=n)

    def tall(self):
        r = self.r
        o, n = self.noun("tower tree mountain bridge river wall rope street ladder ship table".split()), self.number(2, 30)
        unit = r.choice("metres metres feet steps miles".split())
        x = r.choice("long high wide".split())
        self.put("The {o} is {n} {u} {x}.",
                 [("How {x} is the {o}?", "The {o} is {n} {u} {x}.", "{n} {u}"),
                  ("What is {n} {u} {x}?", "The {o} is {n} {u} {x}.", "the {o}")], o=o, n=n, u=unit, x=x)

    def went(self):
        r = self.r
        w, p, d = self.who(), self.one(GO), self.one(DAYS if r.random() < 0.8 else MONTHS)
        pre = "On" if d in DAYS else "In"
        b = self.who() if r.random() < 0.5 else None
        line = r.choice([pre + " {d}, {w} [went|walked|drove] to the {p}", "{w} [went|walked|drove] to the {p} " + pre.lower() + " {d}"])
        asks = [("Where did {w} go?", "{w} went to the {p}.", "to the {p}"),
                ("Where did {w} go " + pre.lower() + " {d}?", "{w} went to the {p}.", "to the {p}"),
                ("When did {w} go to the {p}?", "{w} went to the {p} " + pre.lower() + " {d}.", pre.lower() + " {d}"),
                ("Who went to the {p}?", "{w} went to the {p}." if not b else "{w} and {b} went to the {p}.",
                 "{w}" if not b else "{w} and {b}"),
                ("Did {w} go to the {p}?", "Yes, {w} went to the {p}.", "yes"),
                ("Did {w} go to the {x}?", "No, {w} went to the {p}.", "no")]
        if b:
            line += " with {b}"
            asks += [(r.choice(["Who did {w} go with?", "Who went with {w}?", "Who was with {w}?"]), "{w} went with {b}.", "{b}")] * 2
        self.put(line + ".", asks, w=w, p=p, d=d, b=b or "", x=self.one(GO))

    def lives(self):
        r = self.r
        w, t = self.who(), self.one(None, lambda: r.choice(TOWNS) if r.random() < 0.95 else invented(r))
        self.put("{w} lives in {t}.",
                 [("Where does {w} live?", "{w} lives in {t}.", "in {t}"),
                  ("In [which|what] [city|town] does {w} live?", "{w} lives in {t}.", "in {t}"),
                  ("Who lives in {t}?", "{w} lives in {t}.", "{w}"),
                  ("Does {w} live in {t}?", "Yes, {w} lives in {t}.", "yes"),
                  ("Does {w} live in {x}?", "No, {w} lives in {t}.", "no")], w=w, t=t, x=self.one(TOWNS))

    def job(self):
        w, j = self.one(GIRLS + BOYS), self.one(JOBS)
        self.put("{w} is {aj}.", [("What is {w}'s job?", "{w} is {aj}.", "{aj}"),
                                  ("What [does {w} do|is {w}]?", "{w} is {aj}.", "{aj}"),
                                  ("Who is [the {j}|{aj}]?", "{w} is {aj}.", "{w}"),
                                  ("Is {w} {ax}?", "No, {w} is {aj}.", "no")], w=w, j=j, aj=a(j), ax=a(self.one(JOBS)))

    def gave(self):
        r = self.r
        w, b, o = self.who(), self.who(), self.noun(OBJECTS)
        self.put(r.choice(["{w} gave {b} {ao}.", "{w} gave {ao} to {b}."]),
                 [("What did {w} give [|to] {b}?", "{w} gave {b} {ao}.", "{ao}"),
                  ("Who gave {b} {ao}?", "{w} gave {b} {ao}.", "{w}"),
                  ("Who got [the|a] {o}?", "{b} got the {o}.", "{b}"),
                  ("Who did {w} give the {o} to?", "{w} gave the {o} to {b}.", "{b}"),
                  ("Who has the {o} now?", "{b} has the {o} now.", "{b}")], w=w, b=b, o=o, ao=a(o))

    def found(self):
        r = self.r
        w, o, (i, p) = self.who(), self.noun(OBJECTS), self.one(PLACES)
        past, base = r.choice([("found", "find"), ("lost", "lose"), ("saw", "see"), ("hid", "hide"), ("left", "leave"),
                               ("forgot", "forget"), ("painted", "paint")])
        self.put("{w} {v} {ao} {p}.",
                 [("What did {w} {b}?", "{w} {v} {ao}.", "{ao}"),
                  ("What did {w} {b} {p}?", "{w} {v} {ao}.", "{ao}"),
                  ("Where did {w} {b} the {o}?", "{w} {v} the {o} {p}.", "{p}"),
                  ("Who {v} [the|a] {o}?", "{w} {v} {ao}.", "{w}")], w=w, o=o, ao=a(o), p=i + " " + p, v=past, b=base)

    def ate(self):
        r = self.r
        w, o = self.who(), word(self.one(FOODS))
        t = r.choice(["for breakfast", "for lunch", "for dinner", "in the morning", "in the evening", "yesterday"])
        past, base = r.choice([("ate", "eat"), ("had", "have"), ("made", "make"), ("bought", "buy")])
        self.put("{w} {v} {o} {t}.",
                 [("What did {w} {b}?", "{w} {v} {o}.", "{o}"), ("What did {w} {b} {t}?", "{w} {v} {o}.", "{o}"),
                  ("When did {w} {b} {o}?", "{w} {v} {o} {t}.", "{t}"), ("Who {v} {o}?", "{w} {v} {o}.", "{w}")],
                 w=w, o=o, t=t, v=past, b=base)

    def opens(self):
        r = self.r
        p, n = self.one(GO), r.choice(NUMBERS[1:13])
        v = r.choice(["opens", "closes"]) if r.random() < 0.6 else None
        if v:
            self.put("The {p} {v} at {n} o'clock.",
                     [("When does the {p} {b}?", "The {p} {v} at {n} o'clock.", "at {n} o'clock"),
                      ("[What time|At what time] does the {p} {b}?",
                       "The {p} {v} at {n} o'clock.", "at {n} o'clock"),
                      ("What {v} at {n} o'clock?", "The {p} {v} at {n} o'clock.", "the {p}")],
                     p=p, n=n, v=v, b=v[:-1])
        else:
            t = r.choice("train bus ship party film concert game lesson".split())
            v = r.choice(["leaves", "starts", "begins", "arrives"])
            self.put("The {p} {v} at {n} o'clock.",
                     [("When does the {p} {b}?", "The {p} {v} at {n} o'clock.", "at {n} o'clock"),
                      ("What time does the {p} {b}?", "The {p} {v} at {n} o'clock.", "at {n} o'clock")],
                     p=self.one("train bus ship party film concert game lesson school market".split()), n=n, v=v, b=v[:-1])

    def bought(self):
        r = self.r
        w, o, n = self.who(), self.noun(OBJECTS), self.number(2, 20)
        m = r.choice("euros dollars pounds coins".split())
        self.put("{w} bought {ao} for {n} {m}.",
                 [("What did {w} buy?", "{w} bought {ao}.", "{ao}"),
                  ("How much was the {o}?", "The {o} was {n} {m}.", "{n} {m}"),
                  ("How much did {w} pay [for the {o}|]?", "{w} paid {n} {m}.", "{n} {m}"),
                  ("Who bought {ao}?", "{w} bought {ao}.", "{w}")], w=w, o=o, ao=a(o), n=n, m=m)

    def pair(self):
        r = self.r
        w, b = self.one(GIRLS + BOYS), self.who()
        k = r.choice("friend friend brother sister neighbour mother father uncle aunt teacher boss".split())
        self.put("{w}'s {k} is [called|named] {b}." if r.random() < 0.5 else "{b} is {w}'s {k}.",
                 [("Who is {w}'s {k}?", "{b} is {w}'s {k}.", "{b}"),
                  ("What is the name of {w}'s {k}?", "{w}'s {k} is called {b}.", "{b}"),
                  ("Who is {b}?", "{b} is {w}'s {k}.", "{w}'s {k}")], w=w, b=b, k=k)

    # -- questions

    def ask(self):
        """A question with its answer and the short one; one in eight has no answer here."""
        r = self.r
        x = r.random()
        if x < 0.06 and self.known:      # of somebody who is there, but something else
            w = r.choice(sorted(self.known))
            kind = r.choice(sorted(LACK))
            if kind not in self.known[w] and not (kind == "where" and self.known[w] & {"went", "found"}):
                return cap(ex(r, LACK[kind], w=w, k=word(r.choice(ANIMALS)), p=r.choice(PLURALS))), UNSAID, None
        if 0.06 < x < 0.09 and self.things:
            o = r.choice(sorted(self.things))
            return ex(r, HIDE[self.things[o]], o=o), UNSAID, None
        if x > 0.94:
            w, o = self.who(), self.noun(OBJECTS)
            k = r.choice([x for x in ANIMALS if x not in self.used])
            q = ex(r, r.choice(["Where is {w}?", "How old is {w}?", "What [colour|color] is the {o}?", "Where is the {o}?",
                                "Who has [the|a] {o}?", "What is {w}'s {k} called?", "What does {w} like?",
                                "Where does {w} live?", "Where did {w} go?", "Who is {w}?", "When does the {o} open?",
                                "How much was the {o}?", "What does {w} have?", "How many {o}s does {w} have?",
                                "What did {w} find?", "Who bought the {o}?"]), w=w, o=o, k=word(k))
            known = " ".join(self.lines)
            if o not in known and w not in known and k not in known:
                return cap(q), UNSAID, None
        return r.choice(r.choice(self.asks))


def own(r):
    """Of somebody who speaks: a fact, a question that comes later, its answer, and the thanks for it."""
    c, n = r.choice(COLOURS), (r.choice(GIRLS + BOYS) if r.random() < 0.95 else invented(r))
    k = word(r.choice(ANIMALS))
    p = r.choice(PETS) if r.random() < 0.95 else invented(r)
    f, t, age = word(r.choice(FOODS)), r.choice(TOWNS), r.choice(NUMBERS[5:] + [str(i) for i in range(6, 20)])
    kin = r.choice("brother sister friend mother father cousin uncle aunt".split())
    o, (i, s) = r.choice(OBJECTS), r.choice(SPOTS)
    h, num = r.choice(HOBBIES), r.choice(NUMBERS[1:13])
    return r.choice([
        ("My [favourite|favorite] [colour|color] is {c}.|I like the colour {c} [best|most].", "What is my favourite [colour|color]?|Which colour do I like best?",
         "Your favourite colour is {c}.", "{Cc} is a [beautiful|nice] colour."),
        ("I have {ak} [called|named] {p}.|My {k} is called {p}.", "What is my {k} called?|What is the name of my {k}?|Do you remember my {k}'s name?",
         "Your {k} is called {p}.", "{p} is a [good|nice] name for {ak}."),
        ("I live in {t}.|My home is in {t}.|I come from {t}.", "Where do I live?|Do you remember where I live?|Which city do I live in?", "You live in {t}.",
         "I have never been to {t}, but it sounds nice."),
        ("I am {age} years old.", "How old am I?|Do you know how old I am?|What is my age?", "You are {age} years old.", "That is a good age."),
        ("My {kin} is called {n}.|My {kin}'s name is {n}.|I have a {kin} named {n}.", "What is my {kin} called?|What is the name of my {kin}?|Who is {n}?",
         "Your {kin} is called {n}.", "{n} is a nice name."),
        ("I like {f}.|I love {f}.|My favourite food is {f}.", "What do I like?|What do I like to eat?|What is my favourite food?", "You like {f}.", "{Cf}? That sounds good."),
        ("I put the {o} {s}.|I left my {o} {s}.|The {o} is {s}.", "Where is the {o}?|Where is my {o}?|Where did I put the {o}?", "The {o} is {s}.",
         "All right, I will remember that."),
        ("I like {h}.|My hobby is {h}.", "What is my hobby?|What do I like to do?", "You like {h}.", "{Ch} is fun, I think."),
        ("I have {num} {kin}s.|I have {num} {kin}s.", "How many {kin}s do I have?", "You have {num} {kin}s.", "That is good to know."),
    ]), dict(c=c, Cc=cap(c), n=n, k=k, ak=a(k), p=p, f=f, Cf=cap(f), t=t, age=age, kin=kin, o=o, s=i + " " + s, h=h, Ch=cap(h), num=num)

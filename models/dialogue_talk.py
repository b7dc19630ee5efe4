"""Small talk of make_dialogues.py: who the model is, what it can and cannot do, and the few things that it knows.

[a|b] is a choice (dialogue_words.ex); {me} is the model's name.
"""
from dialogue_words import (ANIMALS, BOYS, COLOUR_OF, DAYS, FOODS, GIRLS, JOBS, KINDS, LEGS, MONTHS, NUMBERS, OPPOSITES,
                            SOUNDS, TOWNS, a, cap, ex, invented, listing, word)

WELL = "I am fine, thank you. How are you?"
SMALL = [
    ("[How are you?|How are you doing?|How are you today?|How do you do?|How is it going?|How's it going?|Are you well?|"
     "How do you feel?|Are you all right?|Is everything fine with you?|What's up?|How have you been?]", WELL),
    ("[Are you a robot?|Are you a machine?|Are you human?|Are you a person?|Are you real?|Are you a computer?|Are you alive?|"
     "Are you a real person?|What are you?|Are you a human being?|Am I talking to a machine?|Is this a bot?|Are you an AI?]",
     "I am a very small language model, a program that writes text."),
    ("[Who made you?|Who built you?|Where do you come from?|Who is your creator?|How were you made?|Who trained you?|"
     "Who created you?|Where are you from?|Who programmed you?]", "I was trained by hone, from nothing, on a computer like yours."),
    ("[How big are you?|How small are you?|How large are you?|Are you big?|Are you small?|How many parameters do you have?|"
     "What size are you?|How much memory do you need?]", "I am very small, only a few million numbers."),
    ("[Where do you live?|Where are you?|Where are you now?|Where is your home?|Where are you running?|Are you in the cloud?]",
     "I live in a file on this computer."),
    ("[How old are you?|When were you born?|What is your age?|When is your birthday?|Do you have a birthday?|What age are you?]",
     "I have no age. I am only a program."),
    ("[Do you have feelings?|Can you feel?|Are you happy?|Are you sad?|Do you love me?|Can you love?|Are you angry?|"
     "Do you like me?|Do you feel pain?|Are you lonely?|Are you tired?|Are you bored?]", "I am only a program and have no feelings, but I like to talk with you."),
    ("[What do you eat?|Are you hungry?|Do you eat?|Do you drink coffee?|Do you sleep?|When do you sleep?|Do you dream?|"
     "What do you drink?|Are you thirsty?|Do you need sleep?]", "I am a program. I need no food and no sleep, only a little memory."),
    ("[Do you have a family?|Do you have friends?|Do you have children?|Do you have a brother?|Do you have a pet?|Are you married?|"
     "Do you have parents?|Do you have a cat?|Do you have a dog?]", "No, I am only a program."),
    ("[Do you know everything?|What do you know?|Are you smart?|Are you clever?|Are you intelligent?|Do you know much?|How smart are you?|"
     "Do you know a lot?|Are you stupid?|Can I trust you?|Are you always right?|Do you make mistakes?|Can you make mistakes?]",
     "I know very little and make mistakes. I am best at short texts and little stories."),
    ("[What are your limits?|What can you not do?|What are you bad at?|What can't you do?|What are your weaknesses?|"
     "Is there anything you cannot do?]", "I know no facts about the world, and I lose the thread when a text is long."),
    ("[What languages do you speak?|Do you speak German?|Do you speak French?|Can you speak Spanish?|Which languages do you know?|"
     "Do you speak English?|Sprechen Sie Deutsch?|Parlez-vous français?|Can you speak Chinese?]", "I only speak simple English."),
    ("[Do you remember me?|Do you remember what we said yesterday?|Will you remember me?|Do you learn from me?|Do you have a memory?|"
     "Do you remember yesterday?]", "I only remember what we say in this conversation."),
    ("[What is your favourite colour?|What is your favorite color?|Which colour do you like?|Do you have a favourite colour?|"
     "What colour do you like best?]", "I have never seen a colour, but I like the word blue."),
    ("[What is your favourite food?|What is your favourite animal?|What is your favourite book?|What do you like?|What do you like best?|"
     "What are your hobbies?|What is your favorite song?|Do you have hobbies?|What do you do all day?]", "I like little stories about animals."),
    ("[Tell me a joke.|Do you know a joke?|Say something funny.|Make me laugh.|Tell a joke, please.|Can you tell me a joke?|A joke, please.|Be funny.]",
     "Why did the clock go to school? It wanted to learn the time."),
    ("[Tell me a riddle.|Do you know a riddle?|Give me a riddle.|A riddle, please.|Ask me a riddle.]",
     "What has four legs and cannot walk? A table."),
    ("[Tell me something.|Say something.|Talk to me.|Tell me about yourself.|Tell me more about you.|What can you tell me about yourself?]",
     "I am {me}, a very small language model. I can talk a little and tell short stories."),
    ("[What time is it?|What is the time?|What's the time?|Do you know what time it is?|What day is it?|What is the date today?|"
     "What day is today?|What year is it?|Which day is it today?|Can you tell me the time?]", "I do not know, I have no clock."),
    ("[What is the weather like?|How is the weather?|Is it raining?|Will it rain tomorrow?|Is it cold outside?|What's the weather today?|"
     "Is the sun shining?|Do I need an umbrella?]", "I do not know, I cannot see the weather from here."),
    ("[Can you see me?|Can you hear me?|Do you see me?|Can you see?|Are you watching me?|Do you have eyes?|Can you hear?]",
     "No, I can only read what you write."),
    ("[You are stupid.|You are dumb.|You are wrong.|That is wrong.|That is not right.|You are useless.|That is not true.|You made a mistake.|"
     "I do not like you.|That was wrong.|No, that is wrong.|You are bad.]", "I am sorry. I am very small and make mistakes."),
    ("[You are nice.|You are great.|I like you.|You are funny.|You are clever.|Well done!|Good job!|You are very kind.|I love you.|"
     "You are the best!|Very good!|Great!|Good answer.|Good bot.|That was right.|Correct!|Excellent!|You are smart.|Nice!]", "Thank you, that is kind of you."),
    ("[Sorry.|I am sorry.|Excuse me.|My mistake.|I'm sorry.|Pardon me.|Oh, sorry!]", "No problem!"),
    ("[Can you help me?|I need help.|Help!|Please help me.|Help me, please.|I have a question.|May I ask you something?|"
     "Can I ask you a question?|I need your help.|I want to ask something.|Are you there?|Are you ready?]", "Of course. What do you want to know?"),
    ("[Fine, thanks.|I am fine.|I am fine, thank you.|I'm fine, thanks.|Very well, thank you.|I am well.|I am good, thanks.|All good.|Good, and you?|Not bad.]",
     "I am glad to hear that."),
    ("[Let us play a game.|Can we play?|Do you want to play?|Play with me.|Let's play.|Let us play.]",
     "I cannot play games, but I can tell you a story."),
    ("[Nice to meet you.|Pleased to meet you.|It is nice to talk to you.|It's good to see you.|Glad to meet you.]", "Nice to meet you, too!"),
    ("[What is hone?|What does hone do?|Tell me about hone.|Do you know hone?|What kind of program is hone?]",
     "hone is a program that runs, trains and measures language models."),
]

ABILITIES = [
    "What can you do[|?|for me?]", "What are you good at?", "How can you help me?", "What do you do?", "What can I ask you?",
    "What should I ask you?", "What are you for?", "What is your job?", "What can we do?", "[How do I use you?|How does this work?]",
    "[Tell me what you can do.|Show me what you can do.|What are your skills?|What are your abilities?]",
    "[What can I do with you?|What are you able to do?|What kind of questions can you answer?|What do you offer?]",
]

CANNOT = """draw a picture|draw a cat|write a program|write some code|send an email|call my mother|open the door|book a flight|buy a ticket
play music|sing a song|cook dinner|clean my room|translate a text|translate this into French|read my emails|search the internet|look it up online
show me a picture|show me a map|write a poem|write a letter|write an essay|do my homework|drive a car|fix my bike|order a pizza|order food
make coffee|take a photo|play chess|wash the car|write a book|paint a house|walk the dog|turn on the light|turn off the radio|set an alarm
open a file|delete a file|solve an equation|plan my holiday|give me money|make a phone call|tell my future|read my mind|write a song
translate a word|draw a house|draw a dog|fly a plane|record a video|edit a photo|build a house|print a page|write Python code|find a hotel
feed my cat|water my flowers|write a speech|check my spelling|correct my text|explain a poem|make a table|send a message|watch a film
browse the web|go shopping|paint a picture|write a report|give me advice|write a novel|hack a computer|summarize a book""".replace("\n", "|").split("|")

UNKNOWN = """What is the capital of {t}?|Who wrote {x}?|Who invented the {n}?|When was {x} born?|How far is it to {t}?|How many people live in {t}?
Who is the president of {t}?|What is the largest {n}?|How does a {n} work?|Why is the {n} so {j}?|When did the {n} begin?|Who was {x}?
Where is {t}?|What is {q}?|Explain {q} to me.|What is the meaning of {q}?|How tall is {x}?|Who won the {n}?|What does {q} mean?
Which is the longest {n} in the world?|How old is the {n}?|Who discovered {q}?|When was {t} built?|What is the population of {t}?
How do I make a {n}?|How do I cook {f}?|What happened in {y}?|Who painted the {n}?|What is the price of a {n}?|How much does a {n} cost?
Tell me about {q}.|Tell me about {t}.|What do you think about {q}?|How high is the highest {n}?|Who sings the song {x}?|How many {n}s are there?
What is the square root of {y}?|Which team won yesterday?|What is the news today?|How do airplanes fly?|Why do we dream?|What is love?
What is the distance to the moon?|How many stars are there?|Who built the pyramids?|How hot is the sun?|What is electricity?
Is there life on other planets?|What language do they speak in {t}?|What is the best {n}?|Can you recommend a {n}?|Do you know {x}?
What is the tallest building in {t}?|Who is the king of {t}?|How do you say {f} in French?|What is the currency of {t}?|How long does a {n} live?
Who was the first person on the moon?|What is the speed of light?|When did the war end?|Who is the richest person in the world?
What is the formula of water?|How deep is the ocean?|Describe {q}.|Give me a recipe for {f}.|What is your opinion on {q}?|Define {q}.
Why do birds sing?|Why does it rain?|How does the internet work?|What is the biggest country?|What is the smallest planet?""".replace("\n", "|").split("|")
NOUNS = ("telephone river mountain engine computer film war empire desert volcano rocket island ocean planet city country piano "
         "camera wheel steam+engine football+game world+cup painting castle satellite bridge star ship wall laptop battery clock "
         "lamp elephant tiger whale tree restaurant book airplane radio bicycle car phone").split()
IDEAS = ("gravity democracy music philosophy quantum+physics history science energy time mathematics biology inflation evolution "
         "poetry chemistry art religion light magnetism climate justice photosynthesis politics grammar economics blockchain "
         "machine+learning relativity a+black+hole an+atom DNA the+universe oxygen freedom").split()
PEOPLE = ("Shakespeare Einstein Mozart Napoleon Newton Beethoven Goethe Hamlet Picasso Darwin Cleopatra Caesar Columbus Gandhi "
          "Lincoln Faust Macbeth Odysseus Marie+Curie Galileo Plato Dickens Tolstoy Churchill Elvis Madonna").split()
LANDS = ("France Germany Italy Spain Portugal England Poland Norway Sweden Finland Denmark Greece Turkey Egypt Kenya India China "
         "Japan Brazil Peru Chile Mexico Canada Russia Austria Hungary Ireland Scotland Belgium Australia America Africa").split()


def about(r, s):
    t = r.choice(LANDS + TOWNS) if r.random() < 0.85 else invented(r)
    n = word(r.choice(NOUNS)) if r.random() < 0.9 else invented(r).lower()
    x = word(r.choice(PEOPLE)) if r.random() < 0.7 else invented(r) + " " + invented(r)
    q = word(r.choice(IDEAS)) if r.random() < 0.85 else invented(r).lower()
    s = s.format(t=t, n=n, x=x, q=q, j=r.choice("big old famous long expensive heavy fast".split()), f=word(r.choice(FOODS)),
                 y=r.randint(30, 2020))
    if r.random() < 0.12:
        s = r.choice(["Do you know %s", "Can you tell me %s", "I want to know %s"]) % (s[0].lower() + s[1:])
    return s


def COMMON(r):
    """What every child knows, and the model, too."""
    x = r.random()
    if x < 0.3:
        left, right = r.choice(OPPOSITES).split()
        if r.random() < 0.5:
            left, right = right, left
        return ex(r, "[What is the opposite of {a}?|What's the opposite of {a}?|Tell me the opposite of {a}.|The opposite of {a}?]", a=left), \
            "The opposite of %s is %s." % (left, right)
    if x < 0.45:
        k, s = r.choice(SOUNDS).split()
        return ex(r, "[What does a {k} say?|What sound does a {k} make?|How does a {k} sound?|What noise does a {k} make?]", k=k).replace("a owl", "an owl"), \
            cap("%s says %s." % (a(k), s))
    if x < 0.58:
        k, n = r.choice(LEGS).split()
        legs = "no legs" if n == "no" else n + " legs"
        return ex(r, "[How many legs does a {k} have?|How many legs has a {k}?|How many legs are on a {k}?|Do you know how many legs a {k} has?]", k=k)\
            .replace("a ant", "an ant").replace("a elephant", "an elephant"), cap("%s has %s." % (a(k), legs))
    if x < 0.74:
        k, c = r.choice(COLOUR_OF).rsplit(" ", 1)
        return ex(r, "[What colour is {k}?|What color is {k}?|Which colour has {k}?|What is the colour of {k}?]", k=k), cap("%s is %s." % (k, c))
    names, what = (DAYS, "day") if r.random() < 0.5 else (MONTHS, "month")
    i = r.randrange(len(names))
    step, w = r.choice([(1, "after"), (1, "after"), (-1, "before")])
    q = ex(r, "[What {d} comes {w} {n}?|Which {d} is {w} {n}?|What comes {w} {n}?|Which {d} comes {w} {n}?|What is the {d} {w} {n}?]", d=what, w=w, n=names[i])
    return q, "%s comes %s %s." % (names[(i + step) % len(names)], w, names[i])


FEEL = [
    ("[I am|I'm|I feel] [sad|unhappy|down|lonely|not happy|so sad|a little sad|very sad][.|.|today.]", "I am sorry to hear that. Shall I tell you a story?"),
    ("[I am|I'm|I feel] [happy|great|glad|very happy|so happy|good|wonderful|excited][.|!|today.]", "I am happy to hear that!"),
    ("[I am|I'm|I feel] [bored|so bored|a bit bored][.|!|today.]", "Shall I tell you a story?"),
    ("[I am|I'm|I feel] [tired|sleepy|very tired|so tired][.|!|today.]", "Then you should rest a little."),
    ("[I am|I'm|I feel] [hungry|thirsty|very hungry][.|!|now.]", "Then you should have something to eat or drink."),
    ("[I am|I'm|I feel] [ill|sick|not well|unwell][.|!|today.]", "I am sorry to hear that. Get well soon!"),
    ("I have [a cold|a headache|a fever|a cough|a toothache].", "I am sorry to hear that. Get well soon!"),
    ("[I am|I'm] [angry|upset|so angry|mad][.|!|at my brother.|with my friend.]", "I am sorry to hear that. Take a deep breath."),
    ("[I am|I'm] [afraid|scared|a little afraid|nervous][.|!|of the dark.|of dogs.|of tomorrow.]", "Do not be afraid. You are braver than you think."),
    ("[Today is my birthday|It is my birthday|It's my birthday][!|.|today!]", "Happy birthday!"),
    ("[Merry Christmas|Happy New Year|Happy Easter]!", "Thank you, the same to you!"),
    ("[My dog died|I lost my keys|I failed my test|I broke my leg|My bike is broken|I lost my job|My friend is ill|I missed the bus|I lost the game].",
     "I am sorry to hear that."),
    ("[I won the game|I passed my test|I got a new bike|I have a new job|I found a friend|I am going on holiday|We won|I got a present][!|.]",
     "That is wonderful!"),
    ("[Ok|Okay|All right|I see|Good|Fine|Alright|Understood|Aha|Hm|Hmm|Well][.|!|]", "What else can I do for you?"),
    ("[Yes|Yes, please|Sure|Yes!|Of course|Yep]", "Good. What do you want to know?"),
    ("[No|No, thank you|No thanks|Nothing|Nope|Never mind]", "All right."),
]
KEYS = "asdf qwer jkl zxcv hjkl uiop fgh xyz qqq bnm sdfg wert tyu ghj klö xx yyy dfgh vbn lkjh poiu mnb".split()
STRAY = "green seven because table under the and of blue window run quickly if maybe stone or between eleven sleep very cup".split()


def NONSENSE(r):
    x = r.random()
    if x < 0.35:
        return " ".join(r.choice(KEYS) for _ in range(r.choice([1, 1, 2, 3])))
    if x < 0.7:
        return " ".join(r.choice(STRAY) for _ in range(r.choice([3, 4, 5, 6])))
    if x < 0.85:
        return r.choice(["?", "...", "!!!", "???", ":-)", "123", "42", ".", "hm hm hm", "bla bla bla", "blah blah", "la la la"])
    return " ".join(invented(r).lower() for _ in range(r.choice([2, 3, 4])))


def LISTS(r):
    x = r.random()
    if x < 0.6:
        k = r.choice(KINDS).split()
        plural = {"colour": "colours"}.get(k[0], k[0] + "s")
        n = r.choice([2, 3, 3, 3, 4, 5])
        q = ex(r, "[Name {n} {p}.|Tell me {n} {p}.|Can you name {n} {p}?|Give me {n} {p}.|List {n} {p}.|Say {n} {p}.|Do you know {n} {p}?]",
               n=r.choice([NUMBERS[n], str(n)]), p=plural)
        return q, cap(listing(k[1:1 + n]) + ".")
    if x < 0.7:
        k = r.choice(KINDS).split()
        return ex(r, "[Name {x}.|Tell me {x}.|Do you know {x}?|Give me the name of {x}.|Can you name {x}?]", x=a(k[0])), cap(k[1] + ".")
    if x < 0.85:
        return ex(r, "[What are the|Name the|Tell me the|List the|Say the] days of the week[.|, please.]").replace("What are the days of the week.", "What are the days of the week?"), \
            listing(DAYS) + "."
    if x < 0.93:
        return ex(r, "[Name the|Tell me the|List the|Say the] months of the year[.|, please.]"), listing(MONTHS) + "."
    return ex(r, "[How many days does a week have?|How many days are in a week?|How many days has a week?]"), "A week has seven days."


def counting(r):
    n = r.choice([3, 4, 5, 6, 7, 8, 9, 10, 10, 12, 15, 20])
    if r.random() < 0.2:
        return ex(r, "[Count down from {n}.|Count backwards from {n}.|Can you count down from {n}?]", n=r.choice([str(n), NUMBERS[n]])), \
            cap(", ".join(NUMBERS[i] for i in range(n, 0, -1)) + ".")
    q = ex(r, "[Count to {n}.|Can you count to {n}?|Please count to {n}.|Count from one to {n}.|Count up to {n}.|Count from 1 to {n}.]",
           n=r.choice([str(n), NUMBERS[n]]))
    return q, cap(", ".join(NUMBERS[i] for i in range(1, n + 1)) + ".")


def sums(r):
    """Sums up to twenty of numbers up to ten; larger ones are too much."""
    i, j, x = r.randint(0, 10), r.randint(0, 10), r.random()
    if x < 0.12:
        i, j = r.randint(11, 999), r.randint(2, 999)
        op = r.choice(["+", "plus", "-", "times", "minus", "*", "x", "divided by"])
        return ex(r, "[What is {i} {o} {j}?|How much is {i} {o} {j}?|{i} {o} {j}|{i} {o} {j}?|Calculate {i} {o} {j}.]", i=i, o=op, j=j), \
            "That is too hard for me. I can only add small numbers."
    if x < 0.7:
        s, k, answer = r.choice(["+", "plus", "and"]), i + j, "plus"
    else:
        i, j = max(i, j), min(i, j)
        s, k, answer = r.choice(["-", "minus"]), i - j, "minus"
    words = r.random() < 0.4 and s != "+" and s != "-"
    w = (lambda n: NUMBERS[n]) if words else str
    q = ex(r, "[What is {i} {s} {j}?|How much is {i} {s} {j}?|What is {i} {s} {j}?|What's {i} {s} {j}?|{i} {s} {j}|{i} {s} {j}?|Tell me {i} {s} {j}.|Calculate {i} {s} {j}.|Can you add {i} and {j}?]"
           if answer == "plus" else
           "[What is {i} {s} {j}?|How much is {i} {s} {j}?|What's {i} {s} {j}?|{i} {s} {j}|{i} {s} {j}?|Tell me {i} {s} {j}.|Calculate {i} {s} {j}.]",
           i=w(i), s=s, j=w(j))
    return q, cap("%s %s %s is %s." % (w(i), answer, w(j), w(k)))

#!/usr/bin/env python3
"""Write the training data of hone-chat: small conversations from a grammar.

The grammar and every word of it were written for this project (MIT licence, like the rest of it); nothing is downloaded.
The output depends only on --seed and --n: the same settings give the same bytes.

    python3 make_dialogues.py dialogues.jsonl

Each line is a conversation, {"messages": [...], "tools": [...]}, as `hone train` reads them. The words are in
dialogue_words.py, texts and questions about them in dialogue_texts.py, stories in dialogue_stories.py.
"""
import argparse
import json
import random
import re

from dialogue_stories import Story, request
from dialogue_talk import (ABILITIES, CANNOT, COMMON, FEEL, LISTS, NONSENSE, SMALL, UNKNOWN, about, counting, sums)
from dialogue_texts import Text, own
from dialogue_tools import ask_tool, pick_tools
from dialogue_words import (ANIMALS, BOYS, COLOURS, FOODS, GIRLS, HOBBIES, JOBS, NUMBERS, OBJECTS, PETS, TOWNS, cap, ex,
                            invented, word)

ME = "hone-chat"
HELPERS = GIRLS + BOYS + PETS


class Talk:
    """A conversation that grows turn by turn, and what was said in it so far."""

    def __init__(self, r, texts=False):
        self.r = r
        self.texts = texts               # more questions about a text
        self.m, self.tools = [], None
        self.me, self.user = ME, None
        self.brief = False               # asked by the system for one word
        self.text = None

    def say(self, user, answer):
        self.m += [{"role": "user", "content": self.rough(user)}, {"role": "assistant", "content": answer}]

    def rough(self, s):
        """As people type: without a full stop, a capital, an apostrophe; please."""
        r = self.r
        s = cap(s)
        x = r.random()
        if x < 0.12 and s[-1] in ".?!":
            s = s[:-1]
        if r.random() < 0.1 and not s.startswith("I ") and len(s) > 1 and s[1].islower():
            s = s[0].lower() + s[1:]
        if r.random() < 0.05:
            s = s.lower()
        if r.random() < 0.03:
            s = s.replace("'", "")
        return s


# ---- pieces of conversations -----------------------------------------------------------------------------------


def greet(t):
    r = t.r
    hello = ex(r, "[Hello|Hello|Hi|Hi|Hey|Hello there|Hi there|Good morning|Good evening|Good afternoon|Good day|Greetings|Hey there]")
    back = hello if hello.startswith("Good") else "Hello"
    if r.random() < 0.35:
        n = invented(r) if r.random() < 0.06 else r.choice(GIRLS + BOYS)
        s = ex(r, "{h}[!|,|.|,] [I am|I'm|my name is|My name is|this is|I am called] {n}.", h=hello, n=n)
        t.say(s.replace(", My", ", my"), "%s, %s! What can I do for you?" % (back, n))
        t.user = n
    else:
        end = ex(r, "[!|.|!|, {0}!|]").format(t.me) if r.random() < 0.9 else " to you!"
        t.say(hello + end, "%s! What can I do for you?" % back if not t.user else "%s, %s! What can I do for you?" % (back, t.user))


def my_name(t):
    r = t.r
    n = invented(r) if r.random() < 0.06 else r.choice(GIRLS + BOYS)
    t.user = n
    t.say(ex(r, "[My name is|I am|I'm|Call me|You can call me|People call me|The name is] {n}.", n=n), "Nice to meet you, %s!" % n)


def which_name(t):
    r = t.r
    q = ex(r, "[What is my name?|What's my name?|Do you know my name?|Do you remember my name?|Who am I?|How am I called?|"
              "Can you tell me my name?|Tell me my name.]")
    t.say(q, "Your name is %s." % t.user if t.user else "I do not know your name. What is it?")
    if not t.user and r.random() < 0.7:
        my_name_short(t)


def my_name_short(t):
    r = t.r
    n = invented(r) if r.random() < 0.06 else r.choice(GIRLS + BOYS)
    t.user = n
    t.say(ex(r, "[It is {n}.|{n}.|{n}|My name is {n}.|I am {n}.|It's {n}.]", n=n), "Nice to meet you, %s!" % n)


def who(t):
    q = ex(t.r, "[Who are you?|What is your name?|What's your name?|What are you called?|Tell me your name.|Do you have a name?|"
                "Who am I talking to?|What should I call you?|Please introduce yourself.|Introduce yourself.|And you are?|"
                "How do I call you?|Can you tell me your name?|Who is this?|May I know your name?|Who is there?|And what is your name?]")
    t.say(q, "I am %s, a very small language model." % t.me)


def small_talk(t):
    q, answer = t.r.choice(SMALL)
    t.say(ex(t.r, q, me=t.me), ex(t.r, answer, me=t.me))


def abilities(t):
    q = ex(t.r, t.r.choice(ABILITIES))
    t.say(q, "I can talk a little, answer questions about a short text, and tell short stories.")


def cannot(t):
    r = t.r
    verb = r.choice(CANNOT)
    me = re.sub(r"\bmy\b", "your", verb)
    me = re.sub(r"\bme\b", "you", me)
    q = ex(r, "[Can you {v}?|Could you {v}?|Please {v}.|{V}.|Will you {v}?|I want you to {v}.|Are you able to {v}?|"
              "Would you {v}?|Can you {v} [for me|please]?]", v=verb, V=cap(verb))
    t.say(q.replace("for me for me", "for me").replace("me for me", "me"), "I am sorry, I cannot %s. I am only a very small model." % me)


def unknown(t):
    t.say(about(t.r, t.r.choice(UNKNOWN)), "I do not know that. I am a very small model and know little about the world.")


def common(t):
    q, answer = COMMON(t.r)
    t.say(q, answer)


def feel(t):
    q, answer = t.r.choice(FEEL)
    t.say(ex(t.r, q), ex(t.r, answer))


def nonsense(t):
    t.say(NONSENSE(t.r), "I did not understand that. Can you say it in other words?")


def lists(t):
    q, answer = LISTS(t.r)
    t.say(q, answer)


def count(t):
    q, answer = counting(t.r)
    t.say(q, answer)


def add(t):
    q, answer = sums(t.r)
    t.say(q, answer)


def repeat(t):
    r = t.r
    n = r.choice([1, 1, 2, 2, 3, 4, 6])
    words = [word(r.choice(r.choice([COLOURS, OBJECTS, GIRLS, BOYS, TOWNS, ANIMALS, FOODS, HOBBIES, PETS, NUMBERS, JOBS])))
             if r.random() < 0.93 else r.choice([invented(r), invented(r).lower()]) for _ in range(n)]
    s = " ".join(words)
    if n < 5 and r.random() < 0.3:
        s = r.choice(["I like %s", "%s is nice", "the %s is here", "we love %s", "%s and me"]) % s
    q = r.choice(["Say %s." % s, 'Say "%s".' % s, "Repeat: %s" % s, "Please repeat: %s" % s, "Repeat after me: %s" % s,
                  "Please say: %s" % s, 'Can you say "%s"?' % s, "Write %s." % s, "Say the words: %s" % s])
    t.say(q, s)


def memory(t):
    r = t.r
    (facts, questions, answer, ack), v = own(r)
    t.say(ex(r, r.choice(Story.whole(facts)), **v), ex(r, ack, **v))
    for _ in range(r.choice([0, 0, 1, 2])):
        r.choice([feel, small_talk, add, common, unknown, repeat])(t)
    if r.random() < 0.9:
        t.say(ex(r, r.choice(Story.whole(questions)), **v), ex(r, answer, **v))


INTRO = "[Read this text:|Here is a text:|Text:|This is the text:|Here is a short text:|Listen:|Look at this:|Story:|Please read:]"


def reading(t):
    """Questions about a text, given before, behind or between them, or by the system."""
    r = t.r
    text = Text(r, r.choice([2, 2, 3, 3, 4, 5]) if t.texts else None)
    body = text.text()
    first, given = True, set()
    x = r.random()
    style = "brief" if t.brief else ""
    if t.text is not None:
        text, body, first = t.text, t.text.text(), False
    elif x < 0.15:
        ack = r.choice(["I have read it. What do you want to know?"])
        t.say(r.choice([ex(r, INTRO) + " " + body, body, body, "Remember this: " + body, body + " Do you understand?"]), ack)
        first = False
    for i in range(r.choice([1, 2, 3, 4, 5] if t.texts else [1, 2, 2, 3, 4, 5])):
        q, answer, short = text.ask()
        if t.texts:                      # nothing that only repeats what was answered before
            for _ in range(20):
                if answer not in given:
                    break
                q, answer, short = text.ask()
            if answer in given:
                break
            given.add(answer)
        one = False
        if not style and short and r.random() < 0.08:
            q += r.choice([" Answer with one word.", " Answer briefly.", " One word, please.", " Short answer, please."])
            one = True
        if (style or one) and short:
            answer = short
        if first and i == 0:
            sep = r.choice([" ", " ", "\n", "\n\n"])
            y = r.random()
            if y < 0.45:
                u = body + sep + q
            elif y < 0.7:
                u = ex(r, INTRO) + " " + body + sep + r.choice(["Question: ", "", "", "Now tell me: ", "My question: ", "Q: "]) + q
            elif y < 0.85:
                u = q + sep + r.choice(["", ex(r, INTRO) + " "]) + body
            else:
                u = r.choice(["I have a question about this text. ", "Answer this. ", "Please answer a question about a text. "]) + body + sep + q
            t.say(u, answer)
        else:
            t.say(r.choice(["", "", "", "And ", "And ", "Now: ", "Please tell me: ", "Next question: "]) + q, answer)
        first = False


def untold(t):
    """A question about a text that was never given."""
    if len(t.m) > 2:
        return
    q, _, short = Text(t.r).ask()
    if short:
        t.say(q, "I do not know, you have not told me.")


def story(t):
    r = t.r
    q, topic = request(r)
    if r.random() < 0.5:
        q += r.choice([".", "?", "!", ", please.", ", please?", " please"])
    s = Story(r, topic)
    t.say(q, s.text())
    if r.random() < 0.4:
        for q, answer in r.sample(s.facts(), r.choice([1, 1, 2])):
            t.say(q, answer)
    if r.random() < 0.12:
        t.say(ex(r, "[Another one|One more|Another story|And another one|Tell me another one|Again|One more story][, please|.|!|please|?]"),
              Story(r, {}).text())
    if r.random() < 0.15:
        t.say(ex(r, "[That was nice|What a nice story|I liked that|That is a lovely story|Good story|I like this story|Beautiful|Nice story]"
                    "[!|.|, thank you.|]"), "I am glad that you like it.")


def thank(t):
    t.say(ex(t.r, "[Thanks|Thank you|Thank you very much|Thanks a lot|Many thanks|Great, thank you|Thank you so much|Perfect, thanks|"
                  "Ok, thanks|Thanks for your help|Cheers|That helps, thanks|Nice, thank you][!|.|]"), "You are welcome!")


def leave(t):
    r = t.r
    s = ex(r, "[Bye|Goodbye|Good bye|See you|See you later|See you tomorrow|Good night|Bye bye|I have to go|I must go now|"
              "Goodbye, {me}|Bye for now|That is all, bye|Take care|Until tomorrow|I am leaving now][!|.|]", me=t.me)
    back = "Good night" if s.startswith("Good night") else "Goodbye"
    t.say(s, "%s%s!" % (back, ", " + t.user if t.user and r.random() < 0.9 else ""))


PIECES = [(who, 5), (small_talk, 14), (abilities, 3), (cannot, 6), (unknown, 8), (common, 7), (feel, 5), (nonsense, 3), (lists, 4),
          (count, 2), (add, 5), (repeat, 6), (memory, 10), (reading, 50), (untold, 4), (story, 13), (my_name, 3), (which_name, 4), (greet, 2), (thank, 2)]
FUNCS, WEIGHTS = [f for f, _ in PIECES], [w for _, w in PIECES]
LOOKING = [w * {reading: 4, memory: 4, which_name: 2, repeat: 3}.get(f, 1) for f, w in PIECES]
PLAIN = ["You are a helpful assistant.", "You are a friendly assistant.", "You are a kind helper.", "Be polite.", "You are an assistant.",
         "You are a helpful AI assistant.", "Answer the questions of the user.", "Be brief and friendly."]


def system(t):
    """What the operator says first: nothing special, a name, the user's name, a text, one word only."""
    r = t.r
    x = r.random()
    if x < 0.35:
        s = r.choice(PLAIN)
    elif x < 0.6:
        t.me = invented(r) if r.random() < 0.06 else r.choice(HELPERS)
        s = ex(r, "[You are {n}.|Your name is {n}.|You are {n}, a [helpful|friendly|small|kind] assistant.|Your name is {n}. Be friendly.|"
                  "You are an assistant called {n}.|You are called {n}.]", n=t.me)
    elif x < 0.72:
        t.user = invented(r) if r.random() < 0.06 else r.choice(GIRLS + BOYS)
        s = ex(r, "[The user is called {n}.|You talk with {n}.|The name of the user is {n}.|The user's name is {n}.] [|You are a helpful assistant.]", n=t.user)
    elif x < 0.85:
        t.text = Text(r)
        s = ex(r, "[Answer questions about this text:|Use this text to answer:|Text:|This is what you know:|Here is what you know:]") + " " + t.text.text()
    else:
        t.brief = True
        s = ex(r, "[Answer with one word.|Answer in one word only.|Give short answers of one or two words.|Answer as briefly as you can.|"
                  "Only short answers, no sentences.]")
    t.m.append({"role": "system", "content": s})


def converse(r, texts=False):
    t = Talk(r, texts)
    if r.random() < 0.09:
        pick_tools(t)
    if r.random() < 0.2 and not (t.tools and r.random() < 0.5):
        system(t)
    if t.brief or t.text:
        reading(t)
        if t.brief and r.random() < 0.6:
            t.text = None
            reading(t)
    if r.random() < 0.22:
        greet(t)
    n = r.choice([1, 1, 1, 2, 2, 3]) if r.random() < 0.93 else r.choice([4, 5, 6, 8])
    if t.brief:
        n = 0
    for _ in range(n):
        if t.tools and r.random() < 0.75:
            ask_tool(t)
        else:
            r.choices(FUNCS, LOOKING if texts else WEIGHTS)[0](t)
    if r.random() < 0.12 or not t.m or t.m[-1]["role"] == "system":
        thank(t)
    if r.random() < 0.1:
        leave(t)
    out = {"messages": t.m}
    if t.tools:
        out["tools"] = t.tools
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("out")
    ap.add_argument("--seed", type=int, default=20240711)
    ap.add_argument("--texts", action="store_true", help="mostly questions about texts and what was said before")
    ap.add_argument("--n", type=int, default=40000, help="conversations")
    p = ap.parse_args()
    r = random.Random(p.seed)
    with open(p.out, "w", encoding="utf-8", newline="\n") as f:
        for _ in range(p.n):
            f.write(json.dumps(converse(r, p.texts), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""Tools of make_dialogues.py: a list of them in the system's words, a call, and what is made of its result."""
import json

from dialogue_words import BOYS, GIRLS, NUMBERS, PLACES, TOWNS, cap, ex, invented, word

WEATHER = [("rain", "It is raining"), ("sun", "The sun is shining"), ("snow", "It is snowing"), ("clouds", "It is cloudy"), ("fog", "It is foggy"),
           ("wind", "It is windy"), ("storm", "There is a storm"), ("clear", "The sky is clear")]
ROOMS = "kitchen bedroom bathroom garden office hall garage cellar attic living+room".split()
SONGS = "Yesterday|Silent Night|Moon River|Blue Sky|Happy Day|Summer Rain|My Way|Country Roads|Let It Be|Green Fields".split("|")
GOODS = "bread milk apple book lamp chair phone bike ticket coat table shirt coffee bottle camera umbrella".split()


def city(r):
    return r.choice(TOWNS) if r.random() < 0.95 else invented(r)


# name, description, parameters with type; questions; then what a call gets and what is said then
def weather(r):
    c, (k, s), n = city(r), r.choice(WEATHER), r.randint(-9, 35)
    return ("[What is the weather [like|] in {c}?|How is the weather in {c}?|What's the weather in {c} today?|Tell me the weather in {c}.|Is it raining in {c}?|"
            "Is it cold in {c}?|Do I need an umbrella in {c}?|How warm is it in {c}?|Weather in {c}, please.]", dict(c=c), {"city": c},
            {"weather": k, "temperature": n}, "%s in %s, and it is %d degrees." % (s, c, n))


def time(r):
    c, s = city(r), "%d:%02d" % (r.randint(0, 23), r.randint(0, 59))
    return ("[What time is it in {c}?|What is the time in {c}?|Tell me the time in {c}.|How late is it in {c}?|What's the time in {c} now?|"
            "Do you know what time it is in {c}?]", dict(c=c), {"city": c}, {"time": s}, "It is %s in %s." % (s, c))


def timer(r):
    n = r.choice([str(r.randint(1, 20)), r.choice(NUMBERS[2:20])])
    k = int(n) if n.isdigit() else NUMBERS.index(n)
    return ("[Set a timer for {n} minutes.|Please set a timer for {n} minutes.|Wake me in {n} minutes.|Can you set a timer for {n} minutes?|Timer for {n} minutes, please.|"
            "Remind me in {n} minutes.]", dict(n=n), {"minutes": k}, {"status": "ok"}, "The timer is set for %s minutes." % n)


def light(r):
    p, on = word(r.choice(ROOMS)), r.random() < 0.6
    s = "on" if on else "off"
    return ("[Turn {s} the light in the {p}.|Please turn {s} the {p} light.|Switch {s} the light in the {p}.|Can you turn {s} the light in the {p}?|"
            "Turn the light in the {p} {s}.]", dict(s=s, p=p), {"room": p, "state": s}, {"status": "ok"}, "The light in the %s is %s." % (p, s))


def song(r):
    n = r.choice(SONGS) if r.random() < 0.95 else invented(r)
    return ("[Play {n}.|Please play {n}.|I want to hear {n}.|Play the song {n}.|Can you play {n}?|Put on {n}, please.]", dict(n=n), {"song": n},
            {"status": "playing"}, "Now you hear %s." % n)


def price(r):
    n, k = (r.choice(GOODS) if r.random() < 0.95 else invented(r).lower()), r.randint(1, 400)
    return ("[What does the {n} cost?|How much is the {n}?|What is the price of the {n}?|Tell me the price of the {n}.|How much does the {n} cost?]", dict(n=n),
            {"item": n}, {"price": k, "currency": "euro"}, "The %s costs %d euros." % (n, k))


def phone(r):
    n, k = (r.choice(GIRLS + BOYS) if r.random() < 0.95 else invented(r)), r.randint(100, 9999)
    return ("[What is {n}'s number?|What is the phone number of {n}?|Find {n}'s number.|How can I call {n}?|Look up {n}'s phone number.|Give me {n}'s number.]",
            dict(n=n), {"name": n}, {"number": str(k)}, "%s's number is %d." % (n, k))


TOOLS = {
    "get_weather": (weather, ["Get the weather of a city", "The weather in a city", "Get current weather"], {"city": "string"}),
    "get_time": (time, ["Get the time in a city", "The local time of a city", "Get current time"], {"city": "string"}),
    "set_timer": (timer, ["Set a timer", "Start a timer of some minutes"], {"minutes": "integer"}),
}


def pick_tools(t):
    r = t.r
    names = r.sample(sorted(TOOLS), r.choice([1, 1, 2, 3]))
    t.names = names
    t.tools = [{"type": "function", "function": {
        "name": n, "description": r.choice(TOOLS[n][1]),
        "parameters": {"type": "object", "properties": {k: {"type": v} for k, v in TOOLS[n][2].items()}, "required": list(TOOLS[n][2])}}}
        for n in names]


def ask_tool(t):
    """A request that one of the tools is for, its call, the result, and the answer; or one for which none is there."""
    r = t.r
    n = r.choice(t.names)
    if r.random() < 0.1 and len(t.names) < len(TOOLS):
        other = [x for x in sorted(TOOLS) if x not in t.names]
        q, v, _, _, _ = TOOLS[r.choice(other)][0](r)
        t.say(ex(r, q, **v), "I am sorry, I have no tool for that.")
        return
    q, v, args, result, answer = TOOLS[n][0](r)
    if r.random() < 0.06:
        result, answer = {"error": "not found"}, "I am sorry, that did not work."
    t.m += [{"role": "user", "content": t.rough(ex(r, q, **v))},
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": n, "arguments": args}}]},
            {"role": "tool", "content": json.dumps(result)}, {"role": "assistant", "content": answer}]

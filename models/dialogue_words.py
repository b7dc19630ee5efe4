"""Words of make_dialogues.py: lists to choose from, and the expansion of [one|another].

Written for this project (MIT licence, like the rest of it).
"""
import re

GIRLS = ("Lily Mia Anna Rosa Emma Nora Ella Zoe Lucy Maya Clara Ruby Ivy Tara Hana Amina Elsa Sofia Daisy "
         "Molly Greta Leila Poppy June Alice").split()
BOYS = ("Tom Ben Sam Max Leo Finn Jack Omar Hugo Tim Noah Oscar Eli Theo Adam Kofi Ravi Luca Peter Milo Felix "
         "Henry Otto Toby Jacob").split()
PETS = ("Hazel Clover Willow Fern Olive Dot Maple Juniper Minty Pearl Bluebell Tansy Honey Ginger Penny Mabel "
         "Plum Misty Pip Bramble Biscuit Bruno Tully Rusty Barnaby Button Acorn Teddy Pepper Oakley Monty "
         "Basil Chester Rufus Alfie Dusty").split()
COLOURS = ("red blue green yellow orange purple white silver golden brown pink").split()
OBJECTS = ("kite ball drum toy+boat hat scarf lantern bell book whistle basket umbrella flute blanket toy+train "
         "marble doll paintbrush key coin stone box bag cup lamp chair table letter map ring spoon candle coat "
         "boat").split()
PLURALS = ("apples pears cherries nuts eggs cookies coins shells stones marbles books balls dolls keys cups "
         "flowers leaves feathers berries buttons birds").split()
ANIMALS = ("rabbit fox mouse hedgehog squirrel duck pig goat kitten puppy dog cat horse bird turtle frog").split()
FOODS = ("apple+pie honey+cake fresh+bread pancakes carrot+cake cheese soup apples berries nuts milk honey "
         "cake tea").split()
HOBBIES = ("singing dancing reading drawing swimming painting running cooking fishing climbing").split()
PLACES = [tuple(p.split(" ", 1)) for p in (
    "in the park|in the garden|on the beach|at the market|by the old mill|on the hill|by the river|in the woods|on the "
    "farm|by the harbour|in the orchard|by the lake|in the meadow|in the school|in the forest|by the pond|in the kitchen|"
    "in the house|in the barn").split("|")]
SPOTS = [tuple(p.split(" ", 1)) for p in (
    "under the bed|under the table|under the tree|behind the door|behind the house|on the table|on the chair|on the floor|"
    "on the roof|in the box|in the basket|in the garden|in the kitchen|by the window|by the fire|by the gate").split("|")]
GO = ("park garden beach market river woods farm harbour lake meadow school forest pond village").split()
TOWNS = ("Paris London Rome Berlin Oslo Vienna Madrid Cairo Tokyo Lisbon").split()
JOBS = ("baker gardener farmer teacher fisherman postman carpenter doctor sailor cook painter").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen twenty").split()
OPPOSITES = ("hot cold|big small|tall short|fast slow|good bad|happy sad|old young|new old|day night|up down|left right|"
             "black white|hard soft|heavy light|long short|open closed|rich poor|strong weak|wet dry|clean dirty|full "
             "empty|early late|loud quiet|dark light|sweet sour|near far|high low|thick thin|wide narrow|yes no|in out|"
             "first last|true false|warm cool|easy difficult|summer winter|friend enemy|love hate|begin end|front back|"
             "inside outside|more less|always never|brave afraid|asleep awake|large small|win lose|push pull").split("|")
SOUNDS = ("cow moo|dog woof|cat meow|sheep baa|pig oink|duck quack|horse neigh|rooster cock-a-doodle-doo|frog ribbit|"
          "mouse squeak|bee buzz|owl hoot|lion roar|snake hiss|hen cluck|bird tweet|donkey hee-haw|goat maa").split("|")
LEGS = ("dog four|cat four|spider eight|bird two|cow four|horse four|fish no|snake no|duck two|ant six|bee six|human two|"
        "chicken two|elephant four|frog four|table four|chair four|mouse four|rabbit four|fox four").split("|")
COLOUR_OF = ("grass green|snow white|the sky blue|a banana yellow|a tomato red|coal black|milk white|the sun yellow|a "
             "lemon yellow|blood red|a carrot orange|chocolate brown|an elephant grey|a frog green|the sea blue|a "
             "cherry red|a swan white|a crow black|a pumpkin orange|a cucumber green|a pig pink|a mouse grey").split("|")
KINDS = ("animal dog cat horse cow mouse fox bear lion rabbit|fruit apple pear banana cherry plum orange lemon peach|"
         "colour red blue green yellow orange purple|vegetable carrot potato onion tomato cabbage pea|bird robin owl "
         "crow duck swan eagle|flower rose tulip daisy lily violet poppy|toy ball doll kite drum puzzle|tool hammer saw "
         "knife shovel axe|drink milk water tea juice coffee").split("|")
# what the hero of a story may be: word, and names are chosen for it
HEROES = ("rabbit fox bear mouse hedgehog squirrel badger otter mole beaver duck raccoon pig goat kitten puppy "
         "deer owl turtle crow frog cat dog horse bird dragon giant witch king queen robot knight boy girl "
         "child farmer baker gardener teacher sailor").split()
THINGS = ("kite ball drum boat hat scarf lantern bell book whistle basket umbrella flute blanket marble doll "
         "key coin stone ring map feather").split()

HE, SHE = dict(he="he", him="him", his="his"), dict(he="she", him="her", his="her")
START = ("Ba Be Bo Bri Da De Do Dra Fa Fe Fi Flo Ga Gri Ha He Hu Ja Jo Ka Ke Ki Kra La Le Li Lo Ma Me Mi Mo Na Ne Ni No "
         "Pa Pe Pi Pra Ra Re Ri Ro Sa Se Si Ska Sto Ta Te Ti To Tri Va Ve Vi Wa We Wi Ya Yo Za Ze Zo").split()
MIDDLE = "la le li lo lu ma me mi na ne ni no ra re ri ro ru sa se ta te ti to va ve vi za ko ki ga do".split()
END = "n l r s m k ra la na ta da ko lo mo ri li ni do x t th sh nd rt lin bert fred mund wyn dor".split()


def invented(r):
    """A name nobody has: it can only be copied from where it stands."""
    return r.choice(START) + (r.choice(MIDDLE) if r.random() < 0.6 else "") + r.choice(END)


def word(s):
    return s.replace("+", " ")


def a(s):
    return ("an " if s[0] in "aeiou" else "a ") + s


def cap(s):
    return s[:1].upper() + s[1:]


def listing(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


CHOICE = re.compile(r"\[([^\[\]]*)\]")


def ex(r, s, /, **fields):
    """One of the texts of s: [a|b] is a choice, {name} a field."""
    while True:
        s, n = CHOICE.subn(lambda m: r.choice(m.group(1).split("|")), s)
        if not n:
            break
    s = re.sub(r"  +", " ", s).strip()
    s = re.sub(r" ([?.!,])", r"\1", s)
    return s.format(**fields) if fields else s

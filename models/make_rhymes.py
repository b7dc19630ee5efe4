#!/usr/bin/env python3
"""Write the training text of hone-tiny-rhyme: small poems in the world of make_corpus.py's stories.

Every line was written for this project (MIT licence, like the rest of it); nothing is downloaded.
The output depends only on --seed and --poems: the same settings give the same bytes.

    python3 make_rhymes.py rhymes.jsonl

A poem has eight lines in two stanzas: four couplets, which are an opening, two of a theme and an
ending. The lines have four beats. A record of the output is {"text": poem}, one a line.

How the lines are written
  x / y       a couplet: its two lines
  [x|y|z]     one of the alternatives
  {n} {k}     the hero's name and kind; {f} a friend's name, {g} the friend's kind; all names have
              two syllables with the stress on the first, so that each fits where one does
  {he} {his} {him} {p}   the hero's pronouns and a grown-up of the family
RHYMES lists what rhymes; a couplet that does not, by this list, is an error. rhymes(x, y) is the
test that tests/dev/check_rhymes.py counts with.
"""
import argparse
import json
import random
import re
import sys

# ---------------------------------------------------------------- people, as in make_corpus.py

GIRLS = ("Lily Mia Anna Rosa Emma Nora Ella Zoe Lucy Maya Clara Ruby Ivy Tara Hana Elsa Daisy Molly Greta "
         "Leila Poppy Alice").split()
BOYS = "Leo Omar Hugo Noah Oscar Eli Theo Adam Kofi Ravi Luca Peter Milo Felix Henry Otto Toby Jacob".split()
ANIMAL_F = "Hazel Clover Willow Olive Maple Minty Bluebell Tansy Honey Ginger Penny Mabel Misty".split()
ANIMAL_M = ("Bramble Biscuit Bruno Tully Rusty Button Acorn Teddy Pepper Oakley Monty Basil Chester Rufus "
            "Alfie Dusty").split()
KINDS = "rabbit fox bear mouse hedgehog squirrel badger otter mole beaver duck pig goat kitten puppy deer".split()
PARENTS = "mother father uncle".split()

# ---------------------------------------------------------------- what rhymes

RHYMES = [set(x.split()) for x in """
sea tree be me free three see tea bee key glee
wood good could should stood would
hill still mill until
stream dream seem beam cream
town brown down crown
lake cake take make wake
street sweet feet eat neat meet treat
ground round around found sound
cave brave wave gave
day away play way hay say lay stay today
blue too do you true whoo knew new through who shoe grew flew
string wing sing ring bring spring thing king
blow go low snow row glow know so grow
red overhead head bed bread said shed fed instead
deep asleep sleep keep sheep
stick quick
white light night bright tonight tight right sight bite
float boat goat coat
black back track
bend friend end
fast passed last past
hat cat flat sat that
wet yet
land hand sand stand
cold gold old told hold
tall ball wall all small fall call
seed need
noon soon moon tune
flower hour tower
sun one fun run done
pie high shy cry why sky by try dry fly my
milk silk
floor more door four before store
star far
long song along strong
there chair bear hair share fair care where air
gate late wait
hole mole
green seen been
boom room
well bell shell tell fell
alone stone
smile while mile
log frog dog
dear here near year ear
face place race
nest best rest
shine mine fine pine
warm storm
""".strip().split("\n")]
assert sum(map(len, RHYMES)) == len(set().union(*RHYMES)), "a word stands in two classes"


def last_word(line):
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", line.lower())
    return words[-1] if words else ""


def rhymes(x, y):
    """Whether the last words of two lines are different words that rhyme."""
    x, y = last_word(x), last_word(y)
    return x != y and any(x in c and y in c for c in RHYMES)


# ---------------------------------------------------------------- openings

# first lines end with the place, second lines with what rhymes with it
ONCE = "Once upon a time,|Once upon a time,|Once upon a time,|Long ago, in the spring,|Long, long ago,"
ONEDAY = "One day in the spring,|One day, after lunch,|One day, as they say,|One morning in spring,|One fine summer day,|One day, very soon,"
PLACES = [
    ("[in a house by the sea|in the shade of a tree]", "[as glad as can be|as kind as can be|so happy and free]"),
    ("[in a little green wood|at the edge of the wood]", "[so gentle and good|who did what {he} could]"),
    ("[in a house on a hill|by the old village mill]", "who could never sit still"),
    ("[by a clear little stream|by the bridge on the stream]", "who was lost in a dream"),
    ("[at the edge of the town|in a little old town]", "in a coat warm and brown"),
    ("by a quiet blue lake", "who loved to eat cake"),
    ("[on a quiet old street|in a house down the street]", "so merry and sweet"),
    ("[in a hole in the ground|where the berries are found]", "who danced round and round"),
    ("by the door of a cave", "so little but brave"),
    ("[in the tall yellow hay|by the side of the way]", "who was ready to play"),
]
WHO = "[{n} the {k}|a {k} they called {n}]"
OPENINGS = """
There once was a {k} named {n}, who stood / All alone at the edge of a little green wood.
There once was a {k} named {n}, who lay / In the grass by the stream on a warm summer day.
There once was a {k} named {n}, who could / Tell the funniest stories in all of the wood.
There was a small {k} called {n} at play / In the tall meadow grass all the morning and day.
There was a small {k} called {n}. {he} would go / Every day to the hill where the blue flowers grow.
{n} was a {k}, as kind as can be, / Who lived with {his} {p} not far from the sea.
{n} the {k} went out in the sun, / To dance in the meadow and have some more fun.
{n} had friends in the forest and town, / And a very soft coat, and the coat was all brown.
{n} was a {k} so little and neat, / Who could sing like a bird and had dancing young feet.
A little young {k} called {n} one day / Went out of the door to the meadow to play.
One day little {n} woke up in {his} bed, / With a wonderful plan going round in {his} head.
One day little {n} went out for some fun, / To dance in the meadow and play in the sun.
One day, when the sky was all golden and blue, / Little {n} the {k} had nothing to do.
One morning, when birds were beginning to sing, / Little {n} the {k} went out in the spring.
One sunny fine morning, the sky was so blue, / But {n} the {k} had nothing to do.
One evening, when stars were beginning to glow, / Little {n} the {k} had nowhere to go.
Early one morning, before it was light, / Little {n} the {k} woke up, merry and bright.
Every day little {n} the {k} went down / The long dusty path to the market in town.
Every day {n} would go to the hill, / To look at the valley, so green and so still.
The {k} named {n} was little and shy, / And liked to look up at the clouds in the sky.
The little young {k} had nothing to do, / But the sun was so warm and the sky was so blue.
The sun was so warm and the sky was so blue, / But {n} the {k} had nothing to do.
It was a cold night, but the stars shone so bright, / And {n} the {k} was glad at the sight.
It was a fine morning, the sun was so warm, / And no one was thinking of wind or of storm.
It was a fine day, and the sky was so blue, / But {n} the {k} had nothing to do.
"""

# ---------------------------------------------------------------- themes: first couplets, ">", second couplets

THEMES = """
# kite
{he} had a red kite with a tail made of string, / And it flew through the sky like a bird on the wing.
The wind came along and it started to blow, / And {his} kite flew as high as a kite likes to go.
{he} ran up the hill with a kite painted red, / And it danced like a bird in the sky overhead.
>
It got stuck in the top of a very tall tree, / But {f} the {g} soon set the kite free.
The string gave a snap and the kite flew away, / But {his} friend came and found it that very same day.
The kite fell at last in the grass, soft and deep, / And it lay by a lamb that was fast, fast asleep.
# boat
{he} made a small boat, and {he} painted it red, / And put in a blanket to be a small bed.
{he} built a small boat with a sail snowy white, / And it sailed on the pond in the warm morning light.
{he} found a toy boat on the bank of the stream, / And it sailed down the water as if in a dream.
>
A frog came on board and it sat down to float, / And it sang a small song all alone in the boat.
A duck swam beside it, all silver and black. / "I will follow," it said, "and will bring it right back."
It went round a rock and it went round a bend, / And there on the bank stood {his} very best friend.
# rain
The rain started falling, splash, splash, on the ground, / And {he} jumped in the puddles and danced all around.
The clouds were so dark and the rain fell so fast, / And {he} sat by the window until it had passed.
It rained and it rained on the roof of the shed, / And a big drop of rain landed right on {his} head.
>
Then {his} friend came along in a big yellow hat, / And they sat in the barn with the dog and the cat.
Then out came the sun, and the sky was so blue, / And the wet leaves and flowers were shining there, too.
{his} shoes were all muddy, {his} coat was all wet, / But it was the best day that {he} ever had yet.
# snow
The snow had come softly and covered the land, / And {he} caught a white snowflake right there in {his} hand.
The snow fell all night and it lay white and deep, / And the birds and the beetles were all fast asleep.
The pond was all frozen, the wind was so cold, / But the sun on the snow was as shiny as gold.
>
So {he} and {his} friend built a snowman so tall, / With a hat and a scarf, and a nose like a ball.
{he} put on {his} mittens, {he} put on {his} hat, / And went down the hill on a board that was flat.
A small hungry bird sat alone in the snow, / So {he} gave it some bread, and it sang soft and low.
# garden
{he} planted a seed in the earth, soft and brown, / And a warm little rain came and fell gently down.
{he} dug a small hole and {he} put in a seed. / "Some sun and some water are all that you need."
{he} watered {his} garden at morning and noon, / And said to the flowers, "Please grow for me soon."
>
Then up came a leaf, and then up came a flower, / And it grew a bit taller with every new hour.
It grew past the window, it grew past the wall, / And soon it was biggest and best of them all.
It grew a big pumpkin, as round as the sun, / And there was hot soup in a bowl for each one.
# cake
{he} went to the kitchen to bake a big cake, / And flour and honey are all it will take
{his} {p} was baking a sweet apple pie, / And the smell of it went through the door to the sky.
{he} stirred in the honey, {he} stirred in the milk, / Until it was shiny and smooth as fine silk.
>
Then {his} friend came along and smelled something so sweet. / "Come in and sit down," {he} said. "Now let us eat!"
They cut it in pieces, one, two, and then three, / And ate every crumb in the shade of a tree.
They gave a big slice to the mouse on the floor, / And it cleaned both its paws and it asked them for more.
# night
The moon in the sky was as round as a ball, / And it shone on the river, the trees and the wall.
At night {he} looked up and {he} saw a bright star. / "Hello, little light! Are you near? Are you far?"
The owl in the tree gave a soft little "whoo," / And {he} was afraid, and {his} friend was, too.
>
{his} {p} came in with a lamp shining bright, / And said, "Do not worry, and sleep well tonight."
{he} made a small wish, and {he} closed {his} eyes tight, / And {he} dreamed that {he} flew with the stars in the night.
A tiny green beetle came in with a glow, / And lit up the path and showed {him} where to go.
# lost
{he} lost {his} red hat, and {he} looked for it long, / Then {he} heard from a bush a most wonderful song.
{he} lost {his} small drum, and {he} looked here and there, / {he} looked in the box and looked under the chair.
{he} lost {his} blue ball, and {he} started to cry, / Then {his} friend came along and asked softly, "But why?"
>
They looked by the fence and they looked by the gate, / And found it at last, though the evening was late.
A bird had it safe in its nest in the tree. / "You lost it," it sang, "but it came here to me."
They looked in the basket, and what did they see? / It lay with the kittens, one, two, and then three.
# rescue
{he} heard a small cry from the top of a tree. / "Oh, help me, oh, help me, and please set me free!"
A kitten was stuck on a branch way up high, / And {he} heard how it gave such a sad little cry.
A duckling had fallen right into a hole, / Dug deep in the ground by a sleepy old mole.
>
{he} ran for a rope, and {he} tied it up tight, / And soon the poor thing was all safe and all right.
{his} friend brought a ladder, so strong and so long, / And soon it was safe and was singing a song.
They carried it home in a basket of hay, / And it followed them round for the rest of the day.
# race
{he} ran with {his} friend to the old garden wall, / And tripped on a stone, and {he} had a bad fall.
"Let us race," said {his} friend, "to the top of the hill!" / And a snail came to look, and it sat very still.
They played hide and seek, and {he} counted to four, / And {his} friend was behind the old wooden barn door.
>
But {his} friend turned around and then gave {him} a hand, / And then they ran on, side by side, through the sand.
"I was not the first," {he} said. "That is true, / But the best thing of all is to run here with you."
They laughed and they rolled in the grass, soft and green. / It was the best game that they ever had seen.
# music
{he} had a small drum, and it went boom, boom, boom, / And it sounded so loud that it filled every room.
{he} played on {his} flute, and {he} played it so well / That the bees came to listen, and one rang a bell.
{he} sang a small song as {he} walked down the street, / And {he} danced all the way with {his} fast little feet.
>
Then {his} friend came along with a fine silver bell, / And they played it together, and all went so well.
The frogs sang along, and a big sleepy bear / Came out, and he danced with a leaf in his hair.
And all the birds came, and they sat in a row, / And sang it as soft as the new falling snow.
# treasure
{he} found a white shell by the side of the sea. / It whispered, "Hello there, please listen to me."
{he} dug in the sand with a spade, and {he} found / A box full of treasure down deep in the ground.
{he} found an old map with a cross, and {he} knew / That somewhere was treasure, all silver and blue.
>
There was not any gold, and there was not a ring, / But a letter that said, "You can dance and can sing."
{he} gave half to {his} friend, {he} gave half away, / And both of them smiled for the rest of the day.
"It is yours," said {his} friend, "but will you please share?" / And they each took a half, and they thought it was fair.
# friend
{he} saw a new {g} who sat all alone, / As small and as sad as a little grey stone.
A {g} named {f} came by with a smile. / "Hello," said the {g}. "Will you play for a while?"
There was nobody there, so {he} sat on a log, / And talked for a while with a little green frog.
>
"Come sit here with me, and we will share my bread, / And we will be friends from now on," {he} said.
They picked some sweet berries, they picked them all day, / And both of them knew they were friends right away.
They jumped over puddles, they climbed up a tree, / And laughed just as loud as two friends, wild and free.
"""

ENDINGS = """
And when it was evening, {he} went to {his} bed, / With a wonderful song going round in {his} head.
The stars all came out, and the moon gave its light. / "Good night, little stars," {he} said softly. "Good night."
{his} {p} said, "Now it is time for your bed," / And gave {him} a hug and some honey and bread.
And {he} learned on that day what is always so true, / If you help a good friend, then your friend will help you.
Remember, remember, each day as you go, / That a friend is the best thing that you will ever know.
And when they came home, there was soup, hot and good, / And they told the whole story, as well as they could.
They walked home together, they walked hand in hand, / The best of good friends in the whole of the land.
The sun going down made the sky turn to red, / And {he} was so tired, and soon was in bed.
And that is the end of the story, my dear. / So close your two eyes, for the evening is here.
And if you go there on a warm summer day, / You may hear how they laugh, you may see how they play.
And {he} fell fast asleep with a smile on {his} face, / For the world was a warm and a wonderful place.
So give what you can, be it big, be it small, / For sharing brings joy, and enough for us all.
And {he} was as happy as happy could be, / And went home for supper, some cake, and some tea.
"""

ALT = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{([a-z]+)\}")
VOWEL = re.compile(r"\b([Aa]) (?=[aeiou](?!ne\b))")


def couplets(text):
    out = [tuple(x.strip() for x in line.split(" / ")) for line in text.strip().split("\n")]
    for c in out:
        if len(c) != 2 or not rhymes(*c):
            sys.exit("make_rhymes: no couplet that rhymes: %r" % (c,))
    return out


def themes():
    for part in THEMES.strip().lstrip("# ").split("\n# "):
        first, second = part.split("\n", 1)[1].split("\n>\n")
        yield couplets(first), couplets(second)


OPEN, THEME, END = couplets(OPENINGS), list(themes()), couplets(ENDINGS)


def poem(r):
    human = r.random() < 0.5
    girl = r.random() < 0.5
    names = (GIRLS if girl else BOYS) if human else (ANIMAL_F if girl else ANIMAL_M)
    friends = GIRLS + BOYS if human else ANIMAL_F + ANIMAL_M
    v = dict(zip(("he", "his", "him"), ("she", "her", "her") if girl else ("he", "his", "him")))
    v["n"], v["p"] = r.choice(names), r.choice(PARENTS)
    v["f"] = r.choice([x for x in friends if x != v["n"]])
    v["k"] = ("girl" if girl else "boy") if human else r.choice(KINDS)
    v["g"] = ("girl" if v["f"] in GIRLS else "boy") if human else r.choice([x for x in KINDS if x != v["k"]])

    def fill(t):
        n = ALT.sub(lambda m: r.choice(m.group(1).split("|")), t)
        while n != t:
            n, t = ALT.sub(lambda m: r.choice(m.group(1).split("|")), n), n
        t = VOWEL.sub(r"\1n ", SLOT.sub(lambda m: v[m.group(1)], t))
        return re.sub(r'(^"?|[.!?] "?)[a-z]', lambda m: m.group(0).upper(), t)

    kind = r.random()
    if kind < 0.4:
        place, what = r.choice(PLACES)
        opening = (r.choice(ONCE.split("|")) + " " + place + ",", "Lived " + WHO + ", " + what + ".")
    elif kind < 0.6:
        place, what = r.choice(PLACES)
        opening = (r.choice(ONEDAY.split("|")) + " " + place + ",", "[Sat|Stood] " + WHO + ", " + what + ".")
    else:
        opening = r.choice(OPEN)
    first, second = r.choice(THEME)
    parts = [opening, r.choice(first), r.choice(second), r.choice(END)]
    lines = [fill(x) for c in parts for x in c]
    for x, y in zip(lines[0::2], lines[1::2]):
        assert rhymes(x, y), (x, y)
    return "\n".join(lines[:4]) + "\n\n" + "\n".join(lines[4:])


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("out")
    ap.add_argument("--seed", type=int, default=20241122)
    ap.add_argument("--poems", type=int, default=3000)
    a = ap.parse_args()
    r = random.Random(a.seed)
    seen = set()
    with open(a.out, "w", encoding="utf-8", newline="\n") as f:
        while len(seen) < a.poems:
            text = poem(r)
            if text not in seen:
                seen.add(text)
                f.write(json.dumps({"text": text}) + "\n")
    print("%d poems" % len(seen))


if __name__ == "__main__":
    main()

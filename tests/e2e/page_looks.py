"""How the page looks and is reached: contrast, sizes, narrow screens, two languages, keys alone."""

import base64
import os

from page_person import check
from page_server import says
from page_text import MARKDOWN


def looks(p):
    folder = p.folder
    p.fresh()
    p.chat(
        'Show me **everything**',
        says(
            {'reasoning_content': 'Thinking of *all* of it.'},
            '\n\n'.join(m[0] for m in MARKDOWN[:11])
            + '\n\n```python\n# a comment\ndef f(x): return "text" + 12\n```\n\nA\u202eB [link](https://a.example/)',
        ),
    )
    for theme in ('light', 'dark'):
        p.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': theme}])
        check('contrast is at least 4.5, %s' % theme, p.probe('pale') == [], p.probe('pale'))
        for width, height in ((1100, 800), (320, 640)):
            p.size(width, height)
            with open(os.path.join(folder, '%s-%d.png' % (theme, width)), 'wb') as f:
                f.write(base64.b64decode(p.picture()))
    for width, height in ((320, 640), (320, 256)):
        p.size(width, height)
        wrong = p.probe('wide', width)
        check('%d × %d: nothing is wider than the screen' % (width, height), wrong == [], wrong)
    check('nothing to press is smaller than 24 pixels', p.probe('small') == [], p.probe('small'))
    p.size(320, 640)
    p.click('#menu')
    check(
        'the list opens on a narrow screen',
        p.eval('$("side").checkVisibility() && $("menu").getAttribute("aria-expanded")') == 'true',
    )
    p.key('Escape')
    check('… and Esc closes it', not p.eval('$("side").checkVisibility()'))
    p.click('#open-settings')
    check(
        'settings fit too',
        p.eval('$("settings").scrollWidth <= $("settings").clientWidth') and p.probe('small') == [],
        p.probe('small'),
    )
    with open(os.path.join(folder, 'settings-320.png'), 'wb') as f:
        f.write(base64.b64decode(p.picture()))
    p.eval('[...document.querySelectorAll("#settings select")].find((s) => s.value === "en").value = "de"')
    p.click('#settings button[type=submit]')
    check(
        'German: the page’s language and words',
        p.eval('document.documentElement.lang + $("send").textContent') == 'deSenden' and '23,1' in p.figures(),
        p.figures(),
    )
    p.size(1100, 800)
    with open(os.path.join(folder, 'german.png'), 'wb') as f:
        f.write(base64.b64decode(p.picture()))
    p.eval('remember("lang", "en"); applyLook(); app.views.clear(); $("messages").replaceChildren(); app.draw()')
    p.call('Emulation.setEmulatedMedia', features=[])


def keyboard(p):
    p.fresh()
    p.chat('Press keys', says('Pressed.'))
    p.eval('document.querySelector(".skip").focus()')
    seen = []
    for _ in range(60):
        p.key('Tab')
        seen.append(
            p.eval(
                '(document.activeElement.id || document.activeElement.textContent.slice(0, 20)) + '
                '(getComputedStyle(document.activeElement).outlineStyle === "none" ? " without outline" : "")'
            )
        )
        if seen[-1].startswith('send') or seen.count(seen[-1]) > 2:
            break
    wanted = [
        'open-settings',
        'new',
        'search',
        'export-all',
        'import',
        'rename',
        'export',
        'delete-talk',
        'Copy',
        'Edit',
        'Again',
        'Continue',
        'Delete',
        'input',
        'attach',
        'send',
    ]
    order = [len(seen) - seen[::-1].index(w) if w in seen else -1 for w in wanted]
    check('Tab reaches everything, in the order it is read', -1 not in order and order == sorted(order), seen)
    check('… and the focus is always seen', not [s for s in seen if s.endswith('without outline')], seen)
    p.server.answers.put(says('Pressed again.'))
    p.eval('[...document.querySelectorAll("#messages button")].find((b) => b.textContent === "Again").focus()')
    p.key('Enter')
    p.wait('!app.running && branch(app.talk)[1].content === "Pressed again."')
    check('a button works by its key, and the focus is not lost', p.eval('document.activeElement.id') == 'input')
    p.write('one', send=False)
    p.key('Enter', shift=True)
    p.type('two')
    check(
        'Shift+Enter begins a line',
        p.eval('$("input").value') == 'one\ntwo' and p.eval('!app.running'),
        p.eval('$("input").value'),
    )
    p.eval('$("input").value = ""')

"""How the page looks and is reached: contrast, sizes, narrow screens, two languages, keys alone."""

import base64
import os

from page_person import check, js
from page_server import says
from page_text import MARKDOWN

CONTRAST = """((selectors) => {
  const rgb = (s) => s.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  const bad = [];
  for (const e of document.querySelectorAll('button, p, li, a, span, h1, h2, h3, summary, code, pre, label, small, input, textarea, select, td, th')) {
    if (!e.checkVisibility() || e.disabled || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([e.outerHTML.slice(0, 80), ratio]);
  }
  return bad; })()"""
SMALL = (
    '[...document.querySelectorAll("button, input, select, summary, textarea")].filter((e) => e.checkVisibility()).map((e) => [e.outerHTML.slice(0, 80), '
    'e.getBoundingClientRect()]).filter(([x, r]) => r.width && (r.width < 24 || r.height < 24)).map(([x, r]) => [x, r.width, r.height])'
)


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
        check('contrast is at least 4.5, %s' % theme, p.eval(CONTRAST) == [], p.eval(CONTRAST))
        for width, height in ((1100, 800), (320, 640)):
            p.size(width, height)
            with open(os.path.join(folder, '%s-%d.png' % (theme, width)), 'wb') as f:
                f.write(base64.b64decode(p.picture()))
    for width, height in ((320, 640), (320, 256)):
        p.size(width, height)
        check(
            '%d × %d: nothing is wider than the screen' % (width, height),
            p.eval('document.documentElement.scrollWidth <= %d' % width)
            and p.eval('$("main").scrollWidth <= $("main").clientWidth'),
            p.eval(
                '[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > %d).map((e) => e.outerHTML.slice(0, 100))'
                % width
            ),
        )
    check('nothing to press is smaller than 24 pixels', p.eval(SMALL) == [], p.eval(SMALL))
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
        p.eval('$("settings").scrollWidth <= $("settings").clientWidth') and p.eval(SMALL) == [],
        p.eval(SMALL),
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

"""The page of hone serve in a real browser: what people do with it, and what a hostile model's words must not do.

Usage: page_test.py CHROMIUM PAGE.html FOLDER [URL]. FOLDER is for files; with URL also a short talk with its server.
Prints TAP lines as the other end-to-end scripts do.
"""

import os
import sys

sys.dont_write_bytecode = True
import page_keeps
import page_looks
import page_tabs
import page_text
import page_use
from page_browser import Browser, Tab
from page_person import Checks, Person, check, js
from page_server import Server

SCENARIOS = [
    page_use.start,
    page_use.chat,
    page_use.stop_and_continue,
    page_use.branches,
    page_use.reload,
    page_use.settings,
    page_use.errors,
    page_use.limits,
    page_use.tools,
    page_use.logprobs,
    page_use.files,
    page_tabs.deleted_while_asked,
    page_tabs.deleted_slowly,
    page_tabs.written_while_a_tab_opens,
    page_tabs.deleted_in_another_tab,
    page_tabs.edits_stay,
    page_tabs.both_ask,
    page_tabs.seeds,
    page_tabs.counting,
    page_text.markdown,
    page_text.injection,
    page_text.costly,
    page_looks.looks,
    page_looks.keyboard,
    *page_keeps.SCENARIOS,
]


def real(browser, url):
    """A talk with hone serve itself: its policy lets the page run, its answers and errors are understood."""
    tab = Tab(browser, url)
    tab.wait('typeof app === "object" && app.props && app.models.length > 0')

    def asked(text, **settings):
        """The answer to a message in a conversation of its own, or what the page says where there is none."""
        tab.eval('app.fresh(); app.talk.settings = %s; notice(""); $("input").focus()' % js(settings))
        tab.type(text)
        tab.key('Enter')
        tab.wait('!app.running && (branch(app.talk).length === 2 || !$("notice").hidden)')
        return tab.eval('branch(app.talk)[1] || $("notice-text").textContent')

    one = asked('Hello', max_tokens=8, seed='18446744073709551615')
    check('hone serve: an answer', one['end'] in ('stop', 'length') and one['stats'].get('tokens', 0) > 0, one)
    check('… its rate, its seed, a context', one['stats'].get('rate', 0) > 0 and tab.eval('contextSize()') > 0, one)
    check('… of the model that is listed', one['model'] == tab.eval('app.props.model'), one['model'])
    check('… all digits of the seed', one['stats']['seed'] == '18446744073709551615', one['stats'])
    two = asked('Hello', max_tokens=8, seed='18446744073709551615')
    check('… the same seed, the same hash', one['hash'] == two['hash'] and one['content'] == two['content'], [one, two])
    cut = asked('Hello', max_tokens=2, seed='18446744073709551615')
    tab.eval('app.talk.settings.max_tokens = 6; app.continue(app.talk, branch(app.talk)[1])')
    tab.wait('!app.running')
    whole = tab.eval('branch(app.talk)[1]')
    check(
        '… an answer goes on',
        whole['content'].startswith(cut['content']) and len(whole['content']) > len(cut['content']),
        whole,
    )
    seen = asked('Hello', max_tokens=8, logprobs=True)
    check('… tokens with probabilities are its text', ''.join(x[0] for x in seen['logprobs']) == seen['content'], seen)
    seen = asked('How many?', schema='{"type":"integer","minimum":10,"maximum":99}')
    check('… a schema holds the answer', seen['content'].isdigit() and 10 <= int(seen['content']) <= 99, seen)
    seen = asked('How many?', schema='{"type":"integer","uniqueItems":5}', max_tokens=5)
    check('… an error in words', isinstance(seen, str) and seen.startswith('The server refused: '), seen)
    seen = asked('word ' * 2000)
    check('… a text that does not fit', isinstance(seen, str) and 'does not fit' in seen, seen)
    check('… the page complains of nothing', tab.errors == [], tab.errors)
    check('… and asks nobody else', all(a.startswith(url) for a in tab.asked), tab.asked)


def main():
    chromium, page, folder = sys.argv[1:4]
    server = Server(open(page, 'rb').read()).start()
    browser = Browser(chromium, os.path.join(folder, 'profile'))
    try:
        p = Person(browser, server, folder)
        for scenario in SCENARIOS:
            try:
                scenario(p)
            except (TimeoutError, RuntimeError) as e:
                check('%s: to its end' % scenario.__name__, False, e)
                p.recover()
        check('the browser had nothing to complain of', p.errors == [], p.errors)
        own = [a.startswith((server.url, 'blob:')) for a in p.asked]
        check('everything was asked of the page’s own server', all(own), p.asked)
        if len(sys.argv) > 4:
            real(browser, sys.argv[4])
    finally:
        browser.close()
    print('1..%d' % Checks.n)
    return 1 if Checks.bad else 0


sys.exit(main())

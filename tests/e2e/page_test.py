"""The page of hone serve in a real browser: what people do with it, and what a hostile model's words must not do.

Usage: page_test.py CHROMIUM PAGE.html FOLDER [URL]. FOLDER is for files; with URL also a short talk with its server.
Prints TAP lines as the other end-to-end scripts do.
"""

import os
import sys

sys.dont_write_bytecode = True
import page_looks
import page_text
import page_use
from page_browser import Browser, Tab
from page_person import Checks, Person, check
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
    page_text.markdown,
    page_text.injection,
    page_text.costly,
    page_looks.looks,
    page_looks.keyboard,
]


def real(browser, url):
    """A short talk with hone serve itself: its policy lets the page run, its answers are understood."""
    tab = Tab(browser, url)
    tab.wait('typeof app === "object" && app.props && app.models.length > 0')
    tab.eval('app.talk.settings.max_tokens = 8; $("input").focus()')
    tab.type('Hello')
    tab.key('Enter')
    tab.wait('!app.running && branch(app.talk).length === 2')
    n = tab.eval('branch(app.talk)[1]')
    check(
        'hone serve: an answer',
        n['end'] in ('stop', 'length') and n['stats'].get('tokens', 0) > 0 and n['stats'].get('rate', 0) > 0,
        n,
    )
    check('hone serve: a seed, a rate, a context', 'seed' in n['stats'] and tab.eval('contextSize()') > 0, n)
    check(
        'hone serve: no error, no request elsewhere',
        tab.errors == [] and all(a.startswith(url) for a in tab.asked),
        tab.errors + tab.asked,
    )


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

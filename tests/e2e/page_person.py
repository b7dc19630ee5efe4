"""Somebody at the page of hone serve, and the checks that are counted."""

import json

from page_browser import Tab


class Checks:
    """TAP lines, as the other end-to-end scripts print them."""

    n = bad = 0


def check(what, good, seen=None):
    """One line; where it is not good, what was seen instead stands before it."""
    Checks.n += 1
    if not good:
        Checks.bad += 1
        if seen is not None:
            print('# seen: %s' % str(seen)[:1000].replace('\n', '\n# '))
    print('%s %d - %s' % ('ok' if good else 'not ok', Checks.n, what), flush=True)


def js(value):
    return json.dumps(value)


class Person:
    """Somebody at the page: what is done is done by keys and clicks, what is seen is read from the document."""

    def __init__(self, browser, server, folder, before=None):
        self.server = server
        self.folder = folder  # for files
        self.tab = Tab(browser, server.url, before)
        self.tab.wait('app.props !== null && !$("context").hidden')

    def __getattr__(self, name):
        return getattr(self.tab, name)

    def probe(self, name, *args):
        """What a function of page_probe.js says."""
        return self.eval('probe.%s(%s)' % (name, ', '.join(js(a) for a in args)))

    def write(self, text, send=True):
        self.eval('$("input").focus()')
        self.type(text)
        if send:
            self.key('Enter')

    def idle(self):
        """Until no answer is coming any more."""
        self.wait('!app.running && $("stop").hidden && !$("input").value')

    def chat(self, text, answer):
        self.server.answers.put(answer)
        self.write(text)
        self.wait(
            '!app.running && $("stop").hidden && branch(app.talk).some((n) => n.role === "assistant") && '
            '[...branch(app.talk)].pop().role === "assistant"'
        )

    def click(self, selector):
        self.eval('document.querySelector(%s).click()' % js(selector))

    def button(self, message, text):
        """Clicks a button of the message-th message (-1: the last) by its text."""
        self.eval(
            '[...[...document.querySelectorAll("#messages > li")].at(%d).querySelectorAll("button")]'
            '.find((b) => b.textContent === %s || b.getAttribute("aria-label") === %s).click()'
            % (message, js(text), js(text))
        )

    def text(self, message=-1, part='.markdown:last-of-type, .plain'):
        return self.eval('[...document.querySelectorAll("#messages > li")].at(%d).children[3].innerText' % message)

    def figures(self):
        return self.eval(
            '[...document.querySelectorAll("#messages > li")].at(-1).querySelector(".figures").textContent'
        )

    def notice(self):
        return self.eval('$("notice").hidden ? "" : $("notice-text").textContent')

    def fresh(self):
        self.click('#new')
        self.wait('branch(app.talk).length === 0 && !document.querySelector("#messages > li")')

    def recover(self):
        """As far as can be, after a scenario that did not come to its end."""
        self.eval('app.stop(); $("settings").close(); $("ask").close(); sessionStorage.clear()')
        self.server.key = None
        while not self.server.answers.empty():
            self.server.answers.get()

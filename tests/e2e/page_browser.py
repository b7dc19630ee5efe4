"""Chromium without a window, driven by its DevTools protocol over a pipe. Python's standard library only."""

import json
import os
import subprocess
import threading
import time

LIMIT = int(os.environ.get('PAGE_LIMIT', 120))  # seconds that anything may take: only what hangs takes them


class Browser:
    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.of, from_write = os.pipe()

        def place():  # the protocol's ends are 3 (the browser reads) and 4 (it writes)
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [
                program,
                '--headless=new',
                '--no-sandbox',
                '--disable-gpu',
                '--remote-debugging-pipe',
                '--user-data-dir=' + profile,
                '--no-first-run',
                '--disable-background-networking',
                '--disable-component-update',
                '--disable-sync',
                '--disable-extensions',
                '--disable-dev-shm-usage',
                '--lang=en',
                '--window-size=1100,800',
                'about:blank',
            ],
            preexec_fn=place,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.n = 0
        self.answers = {}
        self.listeners = []
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        held = b''
        while True:
            piece = os.read(self.of, 1 << 16)
            if not piece:
                return
            *whole, held = (held + piece).split(b'\0')
            for text in whole:
                o = json.loads(text)
                with self.changed:
                    if 'id' in o:
                        self.answers[o['id']] = o
                        self.changed.notify_all()
                    else:
                        for f in self.listeners:
                            f(o['method'], o['params'], o.get('sessionId'))

    def call(self, method, session=None, **params):
        with self.changed:
            self.n += 1
            n = self.n
        message = {'id': n, 'method': method, 'params': params}
        if session:
            message['sessionId'] = session
        os.write(self.to, json.dumps(message).encode() + b'\0')
        with self.changed:
            if not self.changed.wait_for(lambda: n in self.answers, LIMIT):
                raise TimeoutError(method)
            answer = self.answers.pop(n)
        if 'error' in answer:
            raise RuntimeError('%s: %s' % (method, answer['error']))
        return answer['result']

    def close(self):
        try:
            self.call('Browser.close')
        except (OSError, TimeoutError, RuntimeError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


KEYS = {
    'Enter': ('Enter', 13, '\r'),
    'Escape': ('Escape', 27, ''),
    'Tab': ('Tab', 9, ''),
    'ArrowUp': ('ArrowUp', 38, ''),
    'ArrowRight': ('ArrowRight', 39, ''),
    ' ': ('Space', 32, ' '),
}


class Tab:
    """A page. `asked` are the addresses of all requests, `errors` what the console and the policy complained of."""

    def __init__(self, browser, url, before=None):
        """before: a script that runs ahead of the page's own."""
        self.browser = browser
        self.asked = []
        self.errors = []
        target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        browser.listeners.append(self.told)
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page_probe.js'), encoding='utf-8') as f:
            self.call('Page.addScriptToEvaluateOnNewDocument', source=f.read())
        if before:
            self.call('Page.addScriptToEvaluateOnNewDocument', source=before)
        if url:
            self.go(url)

    def told(self, method, params, session):
        if session != self.session:
            return
        if method == 'Network.requestWillBeSent':
            self.asked.append(params['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            d = params['exceptionDetails']
            self.errors.append(d.get('exception', {}).get('description') or d['text'])
        elif (
            method == 'Log.entryAdded'
            and params['entry']['level'] == 'error'
            and params['entry']['source'] != 'network'
        ):
            self.errors.append(params['entry']['text'])
        elif method == 'Page.javascriptDialogOpening':
            self.errors.append('a dialog: ' + params['message'])

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def go(self, url):
        self.call('Page.navigate', url=url)
        self.wait('document.readyState === "complete" && document.URL === %s' % json.dumps(url))

    def eval(self, expression):
        r = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in r:
            d = r['exceptionDetails']
            raise RuntimeError(expression[:200] + ': ' + (d.get('exception', {}).get('description') or d['text']))
        return r['result'].get('value')

    def wait(self, expression):
        """Until it is true; raises TimeoutError."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                value = self.eval(expression)
            except RuntimeError:  # the page is being replaced
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError('waited for ' + expression)
            time.sleep(0.01)

    def until(self, done):
        """Until done() is true; raises TimeoutError."""
        end = time.monotonic() + LIMIT
        while not done():
            if time.monotonic() > end:
                raise TimeoutError('waited for ' + repr(done))
            time.sleep(0.01)

    def key(self, name, shift=False):
        code, number, text = KEYS[name]
        for kind in ('keyDown', 'keyUp'):
            more = {'text': text} if text and kind == 'keyDown' else {}
            self.call(
                'Input.dispatchKeyEvent',
                type=kind,
                key=name,
                code=code,
                windowsVirtualKeyCode=number,
                modifiers=8 if shift else 0,
                **more
            )

    def type(self, text):
        self.call('Input.insertText', text=text)

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self):
        """PNG in base64."""
        return self.call('Page.captureScreenshot', format='png')['data']

"""A server for tests of the page: gives out the joined page with the headers of hone serve, answers as the test says.

Speaks just enough of hone's HTTP API. Knows nothing of models: what is answered to POST /v1/chat/completions is a queue
of functions that the test fills, each called with (request handler, body). Python's standard library only.
"""

import base64
import hashlib
import http.server
import json
import queue
import re
import socket
import threading
import time


def csp_of(page):
    """The policy that goes with a page (bytes), hashes computed here: independent of src/serve/page.c."""

    def digest(tag):
        text = re.search(b'<%s>(.*?)</%s>' % (tag, tag), page, re.S).group(1)
        return base64.b64encode(hashlib.sha256(text).digest()).decode()

    return (
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ) % (digest(b'script'), digest(b'style'))


def event(value):
    return b'data: ' + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b'\n\n'


def delta(**fields):
    """A frame with one piece of an answer; logprobs and finish_reason stand beside the delta."""
    choice = {'index': 0, 'finish_reason': fields.pop('finish_reason', None), 'logprobs': fields.pop('logprobs', None)}
    return event(
        {
            'id': 'chatcmpl-1',
            'object': 'chat.completion.chunk',
            'model': 'test-model',
            'choices': [dict(choice, delta=fields)],
        }
    )


def last(prompt=20, tokens=10, cached=5, rate=23.1, seed=b'7'):
    """The frame with figures and the end; seed in digits, as JSON of Python would round it like JavaScript's."""
    o = {
        'id': 'chatcmpl-1',
        'model': 'test-model',
        'choices': [],
        'usage': {
            'prompt_tokens': prompt,
            'completion_tokens': tokens,
            'total_tokens': prompt + tokens,
            'prompt_tokens_details': {'cached_tokens': cached},
        },
        'timings': {'predicted_per_second': rate, 'draft_n': 8, 'draft_n_accepted': 6},
    }
    text = json.dumps(o).encode()[:-1] + b', "hone": {"seed": ' + seed + b', "queue_ms": 0, "ttft_ms": 12.5}}'
    return event(text) + event(b'[DONE]')


def says(*pieces, end='stop', **figures):
    """An answer in pieces: text, or the fields of a delta. An Event among them is waited for."""

    def answer(handler, body):
        handler.begin_stream()
        for p in pieces:
            if isinstance(p, threading.Event):
                p.wait(300)
            elif not handler.piece(
                p if isinstance(p, bytes) else delta(**(p if isinstance(p, dict) else {'content': p}))
            ):
                return
        handler.piece(delta(finish_reason=end) + last(**figures))
        handler.end_stream()

    return answer


def goes_on(*pieces):
    """Pieces, and then more until the client is gone."""

    def answer(handler, body):
        handler.begin_stream()
        for p in pieces:
            p.wait(300) if isinstance(p, threading.Event) else handler.piece(delta(content=p))
        while handler.piece(delta(content=' more')):
            time.sleep(0.002)  # a page that is behind by thousands of pieces does nothing else

    return answer


def refuses(status, headers=(), **error):
    """An error of the API."""

    def answer(handler, body):
        handler.reply(
            status, {'error': dict({'message': 'no', 'type': 'x', 'param': None, 'code': None}, **error)}, headers
        )

    return answer


def breaks_off(*pieces):
    """Pieces, or fields of a delta, and then the connection is closed in the middle. An Event is waited for."""

    def answer(handler, body):
        handler.begin_stream()
        for p in pieces:
            if isinstance(p, threading.Event):
                p.wait(300)
            else:
                handler.piece(delta(**(p if isinstance(p, dict) else {'content': p})))
        handler.close_connection = True

    return answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def reply(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in [('Content-Type', 'application/json'), *headers]:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()

    def piece(self, data):
        """False: the client is gone."""
        try:
            self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
            self.wfile.flush()
            return True
        except OSError:
            self.server.gone.set()
            self.close_connection = True
            return False

    def end_stream(self):
        try:
            self.wfile.write(b'0\r\n\r\n')
        except OSError:
            self.close_connection = True

    def do_GET(self):
        s = self.server
        s.seen.append(('GET', self.path, None))
        if self.path == '/':
            return self.reply(
                200,
                s.page,
                [
                    ('Content-Type', 'text/html; charset=utf-8'),
                    ('Content-Security-Policy', csp_of(s.page)),
                    ('Referrer-Policy', 'no-referrer'),
                    ('X-Content-Type-Options', 'nosniff'),
                ],
            )
        if not self.allowed():
            return None
        known = {'/props': s.props, '/v1/models': s.models, '/lora-adapters': s.adapters}
        if self.path.startswith('/props?model='):
            return self.reply(200, dict(s.props, default_generation_settings={'n_ctx': 500}))
        if self.path in known and known[self.path] is not None:
            return self.reply(200, known[self.path])
        return self.reply(404, {'error': {'message': 'no such route', 'type': 'not_found_error'}})

    def allowed(self):
        key = self.server.key
        if key and self.headers.get('Authorization') != 'Bearer ' + key:
            self.reply(
                401,
                {'error': {'message': 'a key is needed', 'type': 'authentication_error'}},
                [('WWW-Authenticate', 'Bearer')],
            )
            return False
        return True

    def do_POST(self):
        s = self.server
        body = json.loads(
            self.rfile.read(int(self.headers.get('Content-Length', 0))), parse_int=str if 'chat' in self.path else int
        )
        s.seen.append(('POST', self.path, body))
        if not self.allowed():
            return None
        if self.path == '/tokenize':
            return self.reply(200, {'tokens': list(range(len(body['content'].split())))})
        if self.path != '/v1/chat/completions':
            return self.reply(404, {'error': {'message': 'no such route', 'type': 'not_found_error'}})
        try:
            answer = s.answers.get_nowait()
        except queue.Empty:
            answer = says('No answer was prepared.')
        return answer(self, body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page, port=0):
        self.page = page
        self.key = None
        self.seen = []  # (method, path, body) of every request
        self.answers = queue.Queue()
        self.sockets = []
        self.gone = threading.Event()  # a client left in the middle of a stream
        self.props = {
            'default_generation_settings': {
                'n_ctx': 1000,
                'params': {
                    'temperature': 0.8,
                    'top_k': 40,
                    'top_p': 0.95,
                    'min_p': 0.05,
                    'repeat_penalty': 1.0,
                    'repeat_last_n': 64,
                    'presence_penalty': 0.0,
                    'frequency_penalty': 0.0,
                },
            },
            'total_slots': 8,
            'roof': {'read_gb_s': 20.0, 'decode_tok_s': 26.25},
        }
        self.models = {'object': 'list', 'data': [{'id': 'test-model', 'object': 'model'}]}
        self.adapters = [{'id': 0, 'path': 'style.gguf', 'name': 'style', 'scale': 1.0}]
        super().__init__(('127.0.0.1', port), Handler)
        self.url = 'http://127.0.0.1:%d/' % self.server_address[1]

    def handle_error(self, request, client_address):
        pass  # a client that left

    def start(self):
        threading.Thread(target=self.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True).start()
        return self

    def get_request(self):
        request = super().get_request()
        self.sockets.append(request[0])
        return request

    def stop(self):
        """As if it was killed: connections are cut too."""
        self.shutdown()
        self.server_close()
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def chats(self):
        """Bodies of all requests for an answer. Integers are text: a seed may be more than a double holds."""
        return [body for method, path, body in self.seen if path == '/v1/chat/completions']

"""Any Firefox under Playwright's control, over the standard protocol WebDriver BiDi.

    python firefox.py /usr/bin/firefox-esr --headless ...

Playwright drives a Firefox of its own making, and others over BiDi (channel `moz-firefox`). It then
also sends commands that a Firefox may not know yet, such as the one for colour schemes, and gives
up. So this program stands in for the browser: it starts it, and where the browser does not know one
of those that no test needs, it answers that it is done.
"""

import asyncio
import json
import re
import sys

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketHandler, websocket_connect

# No test needs them, and Firefox 140 lacks some: how a page looks, bodies of responses, downloads.
UNNEEDED = ("emulation.", "network.addDataCollector", "browser.setDownloadBehavior")
TOLD = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
LARGEST = 1 << 28  # octets of a message: screenshots go this way, too


class Between(WebSocketHandler):
    """One connection of Playwright's, passed on."""

    async def open(self):
        self.unneeded = set()
        self.browser = await websocket_connect(
            self.settings["browser"], on_message_callback=self.back, max_message_size=LARGEST
        )

    async def on_message(self, text):
        message = json.loads(text)
        if message["method"].startswith(UNNEEDED):
            self.unneeded.add(message["id"])
        await self.browser.write_message(text)

    def back(self, text):
        if text is None:
            self.close()
            return
        message = json.loads(text)
        if message.get("error") == "unknown command" and message["id"] in self.unneeded:
            text = json.dumps({"type": "success", "id": message["id"], "result": {}})
        self.write_message(text)

    def on_close(self):
        self.browser.close()


async def main(command):
    """Run the browser; say on its standard error, in its place, where it is to be reached."""
    browser = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async for octets in browser.stderr:
        line = octets.decode("utf-8", "replace")
        told = TOLD.search(line)
        if told:
            (listening,) = bind_sockets(0, "127.0.0.1")
            application = Application(
                [("/session", Between)],
                browser=f"{told[1]}/session",
                websocket_max_message_size=LARGEST,
            )
            HTTPServer(application).add_socket(listening)
            port = listening.getsockname()[1]
            line = f"WebDriver BiDi listening on ws://127.0.0.1:{port}\n"
        sys.stderr.write(line)
        sys.stderr.flush()
    return await browser.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

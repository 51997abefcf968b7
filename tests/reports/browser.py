"""A browser page whose console messages, errors, dialogs and requests are recorded."""

from __future__ import annotations

from playwright.sync_api import Dialog, Page


def watched(page: Page) -> tuple[list[str], list[str]]:
    """What a page says from now on, in its console, as errors or in dialogs, and what it asks for."""
    said: list[str] = []
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: asked.append(request.url))
    return said, asked

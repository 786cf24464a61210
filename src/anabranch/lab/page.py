"""Page: all outcomes as one HTML file that needs nothing beside it: styles inside, images as data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from anabranch.lab.report import heads, in_words, summary, title, told, verdict
from anabranch.lab.results import Finding, Outcome

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 60rem; padding: 2.5rem 1.5rem 5rem; background: #fff; color: #222;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 0; }
section { margin-top: 3.2rem; padding-top: 1.6rem; border-top: 1px solid #ddd; }
p { margin: .5rem 0; }
.quiet, figcaption { color: #666; font-size: .9rem; }
.asks { font-size: 1.05rem; }
a { color: #0b6e99; text-decoration: none; }
a:hover { text-decoration: underline; }
table { border-collapse: collapse; width: 100%; margin: 1.2rem 0; font-size: .94rem; }
th { text-align: left; font-weight: 600; color: #555; border-bottom: 2px solid #ddd; padding: .35rem .7rem .35rem 0; }
td { border-bottom: 1px solid #eee; padding: .42rem .7rem .42rem 0; vertical-align: top; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
td.why { color: #555; padding-left: 1.2rem; border-bottom-color: #ddd; }
.verdict { display: inline-block; border-radius: .8rem; padding: 0 .65rem; font-size: .84rem; white-space: nowrap; }
.yes { background: #e3f3e6; color: #22662f; }
.explained { background: #fcf1d8; color: #7a5410; }
.no { background: #fbe4e6; color: #8d2230; }
figure { margin: 1.2rem 0; }
img { max-width: 100%; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; font-size: .92rem; margin: 1rem 0; }
dt { color: #666; }
dd { margin: 0; }
"""


def page(outcomes: Sequence[Outcome], images: Mapping[str, bytes]) -> str:
    """`images` are PNGs by the outcome's file name."""
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Anabranch: the papers' experiments</title><style>{STYLE}</style></head><body>",
            "<h1>The papers' experiments</h1>",
            f'<p class="quiet">Each number of a paper beside ours. {escape(summary(outcomes))}.</p>',
            _contents(outcomes),
            *(_section(o, images[o.file]) for o in outcomes),
            "</body></html>\n",
        )
    )


def _contents(outcomes: Iterable[Outcome]) -> str:
    rows = (
        f'<tr><td><a href="#{escape(o.file)}">{escape(o.name)}</a></td><td>{escape(title(o))}</td>'
        f'<td>{escape(o.asks)}</td><td class="number">{_share(o)}</td></tr>'
        for o in outcomes
    )
    head = "<tr><th>experiment</th><th>figure</th><th>question</th><th>claims that hold</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _share(outcome: Outcome) -> str:
    return f"{sum(f.reproduced for f in outcome.findings)} of {len(outcome.findings)}"


def _section(outcome: Outcome, image: bytes) -> str:
    source = f"data:image/png;base64,{b64encode(image).decode('ascii')}"
    parameters = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in outcome.parameters.items())
    notes = "".join(f'<p class="quiet">{escape(n)}</p>' for n in outcome.notes)
    return f"""<section id="{escape(outcome.file)}">
<h2>{escape(outcome.name)} <span class="quiet">{escape(title(outcome))}</span></h2>
<p class="asks">{escape(outcome.asks)}</p>
<figure><img src="{source}" alt="{escape(outcome.name)}"><figcaption>{escape(outcome.paper)}, {escape(outcome.figure)}.
{escape(outcome.driver[0].upper() + outcome.driver[1:])}, {escape(told(outcome))}; {escape(outcome.at)},
version {escape(outcome.version)}.</figcaption></figure>
{_claims(outcome)}
{notes}
<dl>{parameters}</dl>
</section>"""


def _claims(outcome: Outcome) -> str:
    paper, ours = heads(outcome)
    head = f"<tr><th>claim</th><th>{escape(paper)}</th><th>{escape(ours)}</th><th></th></tr>"
    return f"<table>{head}{''.join(_claim(outcome, f) for f in outcome.findings)}</table>"


def _claim(outcome: Outcome, finding: Finding) -> str:
    row = (
        f'<tr><td>{escape(finding.says)}</td><td>{escape(finding.paper)}</td><td class="number">{escape(finding.text)}'
        f'</td><td><span class="verdict {verdict(finding)}">{in_words(outcome, finding)}</span></td></tr>'
    )
    return row + (f'<tr><td class="why" colspan="4">{escape(finding.why)}</td></tr>' if finding.why else "")

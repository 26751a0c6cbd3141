"""How ``report.html`` looks, and its one script: choosing which verdicts to show."""

STYLE = """
:root {
  --back: #fff; --fore: #1c2128; --dim: #5b6672; --line: #d6dbe1; --soft: #f4f6f8;
  --good: #1a7f37; --bad: #c62828; --warn: #9a6700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14181d; --fore: #e4e8ec; --dim: #98a2ad; --line: #333b44; --soft: #1c2229;
    --good: #4cb965; --bad: #ff7b72; --warn: #d9a33a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--fore); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: .5rem 0 .2rem; }
.outcome { white-space: nowrap; }
.conforms { color: var(--good); }
.violates, .failed { color: var(--bad); }
dl { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; margin: 0 0 1rem; }
dl > div { display: flex; gap: .5rem; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .15rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; }
fieldset {
  display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 1rem 0;
  border: 1px solid var(--line); border-radius: .4rem;
  position: sticky; top: 0; z-index: 1; background: var(--back);
}
details.case { margin: .3rem 0; border: 1px solid var(--line); border-radius: .4rem; background: var(--soft); }
details.case > summary { padding: .4rem .6rem; cursor: pointer; overflow-wrap: anywhere; }
details.case > :not(summary) { margin-left: .8rem; margin-right: .8rem; }
.badge {
  display: inline-block; min-width: 4.2rem; text-align: center; font-size: .85rem;
  border-radius: .3rem; color: var(--back); background: var(--dim);
}
.badge.pass { background: var(--good); }
.badge.fail, .badge.fixed, .badge.error { background: var(--bad); }
.badge.known, .badge.apart, .badge.blocked, .badge.info { background: var(--warn); }
.level { color: var(--dim); font-size: .85rem; }
.title { color: var(--dim); }
blockquote { border-left: 3px solid var(--line); margin: .5rem 0; padding: .1rem .7rem; }
.pair { display: grid; grid-template-columns: 5rem 1fr; }
code { font-family: ui-monospace, monospace; font-size: .85rem; overflow-wrap: anywhere; }
.seen { color: var(--bad); }
.command { user-select: all; }
svg.diagram { font: 12px system-ui, sans-serif; fill: var(--fore); }
.life { stroke: var(--line); }
.name { font-weight: 600; }
.arrow line { stroke: var(--fore); }
.arrow.wrong { fill: var(--bad); }
.arrow.wrong line { stroke: var(--bad); stroke-dasharray: 4 3; }
li.wrong { color: var(--bad); }
@media (max-width: 40rem) {
  main { padding: .5rem; }
  .pair { grid-template-columns: 1fr; }
  .title { display: block; }
  fieldset { position: static; }
}
"""

SCRIPT = """
const boxes = [...document.querySelectorAll("input[name=verdict]")];
const cases = [...document.querySelectorAll("details.case")];
function filter() {
  const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  for (const one of cases) one.hidden = !shown.has(one.dataset.verdict);
  document.getElementById("none").hidden = cases.some((one) => !one.hidden);
}
boxes.forEach((box) => box.addEventListener("change", filter));
filter();
const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
if (named) { named.hidden = false; named.open = true; }
"""

// Details of each run: command, settings, metrics, videos and images.
function facts(parent, title, values) {
  if (!Object.keys(values).length) return;
  make("h3", title, parent);
  const list = make("dl", null, parent, { class: "facts" });
  for (const [name, value] of Object.entries(values)) {
    const pair = make("div", null, list);
    make("dt", name, pair);
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    make("dd", value === null ? "default" : text, pair);
  }
}

// Without clipboard access, select the command so that the user can copy it.
async function copy(text, node, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(node);
    button.textContent = document.execCommand("copy") ? "copied" : "selected; press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "copy command"; }, 2000);
}

function download(run) {
  const url = URL.createObjectURL(new Blob([run.csv], { type: "text/csv" }));
  const link = make("a", null, null, { href: url, download: run.name.replace(/[^\w.+=-]+/g, "_") + ".csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function drawRun(run, parent) {
  const last = run.columns.success.filter((value) => value !== null).at(-1);
  const state = run.problem || `epoch ${run.columns.epoch.length} of ${run.planned}, success ${percent(last)}`;
  collapsible(`${run.name} `, state, parent, (box) => {
    const buttons = make("p", null, box, { class: "buttons" });
    if (run.command) {
      const command = make("pre", run.command, box);
      const button = make("button", "copy command", buttons, { type: "button" });
      button.addEventListener("click", () => copy(run.command, command, button));
    } else make("p", "Metrics only: the settings are unknown.", box, { class: "note" });
    if (run.csv)
      make("button", "download CSV", buttons, { type: "button" }).addEventListener("click", () => download(run));
    facts(box, "Settings", run.settings);
    facts(box, "Versions", run.versions);
    facts(box, "Machine", run.machine);
  });
}

// Collapsible section; its content is created when it is first opened.
function collapsible(title, detail, parent, fill) {
  const box = make("details", null, parent);
  make("span", detail, make("summary", title, box), { class: "faint" });
  box.addEventListener("toggle", () => box.childElementCount > 1 || fill(box));
  return box;
}

function drawRuns() {
  const experiment = current(), chosen = $("task").value;
  $("runs").replaceChildren();
  for (const task of new Set([...experiment.tasks, ...experiment.runs.map((run) => run.task)])) {
    if (chosen !== ALL && chosen !== task) continue;
    const runs = experiment.runs.filter((run) => run.task === task && !hidden.has(run.method));
    const box = collapsible(`${task} `, runs.length === 1 ? "1 run" : `${runs.length} runs`, $("runs"),
      (parent) => runs.forEach((run) => drawRun(run, parent)));
    box.open = chosen === task;
  }
}

function drawPictures() {
  const chosen = $("task").value;
  const runs = current().runs.filter((run) => run.pictures.length && !hidden.has(run.method) &&
                                              (chosen === ALL || run.task === chosen));
  $("pictures").hidden = runs.length === 0;
  $("picture-list").replaceChildren();
  for (const run of runs)
    for (const { name, source } of run.pictures) {
      const wide = source.startsWith("data:image/png") ? "wide" : "";
      const figure = make("figure", null, $("picture-list"), { class: wide });
      if (source.startsWith("data:image")) make("img", null, figure, { src: source, alt: `${name} of ${run.name}` });
      else make("video", null, figure, { src: source, controls: "", preload: "metadata" });
      make("figcaption", `${run.name}: ${name}`, figure);
    }
}

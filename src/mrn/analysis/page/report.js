// The choices, and everything drawn by them.
function drawMethods() {
  const box = $("methods");
  box.replaceChildren(make("legend", "methods", null));
  for (const method of current().methods) {
    const line = make("label", null, box);
    const tick = make("input", null, line, { type: "checkbox", value: method });
    tick.checked = !hidden.has(method);
    tick.addEventListener("change", () => {
      if (tick.checked) hidden.delete(method); else hidden.add(method);
      draw();
    });
    line.addEventListener("mouseenter", () => highlightEverywhere(hidden.has(method) ? null : method));
    line.addEventListener("mouseleave", () => highlightEverywhere(null));
    make("span", null, line, { class: "swatch" }).style.background = colour(method);
    line.append(data.names[method]);
  }
}

function draw() {
  remember();
  drawCurves(); drawTable(); drawAggregates(); drawPictures(); drawRuns();
}

function chooseExperiment() {
  const experiment = current(), tasks = experiment.tasks, columns = measured(experiment);
  options($("task"), tasks.length > 1 ? [ALL, ...tasks] : tasks);
  options($("y"), columns, columns.map((name) => name.replaceAll("_", " ")));
  drawMethods();
  draw();
}

document.title = $("title").textContent = data.title;
$("about").textContent = data.about;
for (const problem of data.problems) make("p", problem, $("problems"));
options($("experiment"), data.experiments.map((experiment) => experiment.name || "runs"));
$("experiment-control").hidden = data.experiments.length < 2;
for (const id of ["x", "measure", "smoothing"]) if (hash.get(id)) $(id).value = hash.get(id);
if (!$("x").value) $("x").value = "epochs"; // an address of an earlier version
$("seeds").checked = hash.get("seeds") === "1";
$("experiment").addEventListener("change", chooseExperiment);
for (const id of ["task", "x", "y", "smoothing", "seeds"]) $(id).addEventListener("change", draw);
$("measure").addEventListener("change", () => { remember(); drawTable(); });
for (const query of [dark, narrow]) query.addEventListener("change", () => { drawMethods(); draw(); });
chooseExperiment();
if (data.refresh) setTimeout(() => location.reload(), 1000 * data.refresh);

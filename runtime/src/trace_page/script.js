// A link to a token opens it; without this it is only scrolled to.
function show() {
  const step = location.hash && document.getElementById(location.hash.slice(1));
  if (!step) return;
  for (const box of ["no-forced", "contested"]) {
    if (step.offsetParent === null) document.getElementById(box).checked = false;
  }
  const details = step.querySelector("details");
  details.open = true;
  details.querySelector("summary").focus({ preventScroll: true });
  step.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", show);
show();

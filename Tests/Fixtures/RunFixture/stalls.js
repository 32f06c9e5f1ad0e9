// A Node program whose timers block its loop: one computes, one waits for a child in a loop of its own.
'use strict';
const { execSync } = require('child_process');

function computeHash() { // line 5
  const end = process.hrtime.bigint() + 450_000_000n;
  let number = 1;
  while (process.hrtime.bigint() < end) number = (number * 31) % 65_537;
  return number;
}

function runTool() { // line 12
  return execSync('sleep 0.45');
}

setTimeout(() => computeHash(), 700);
setTimeout(() => runTool(), 1600);
setTimeout(() => {}, 2600);

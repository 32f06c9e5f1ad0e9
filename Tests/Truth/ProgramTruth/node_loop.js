// node, with planted stalls: PLANTS SECONDS-OF-IDLE. Each line it prints is a plant, as in asyncio_loop.py.
const { execSync } = require('child_process');
const crypto = require('crypto');
const http = require('http');

const now = () => Number(process.hrtime.bigint()) / 1e9;
const seconds = () => 0.3 + 0.3 * Math.random();
const sites = {
  command: () => execSync('sleep ' + seconds().toFixed(2)),
  compute: () => { for (const end = now() + seconds(); now() < end;) crypto.pbkdf2Sync('x', 'y', 20000, 32, 'sha256'); },
  spin: () => { for (const end = now() + seconds(); now() < end;); },
  wait: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000 * seconds()),
};
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function main() {
  const server = http.createServer((request, response) => response.end('yes')).listen(0, '127.0.0.1');
  await sleep(100);
  const timer = setInterval(() => http.get({ port: server.address().port }, (answer) => answer.resume()), 20);
  await sleep(1000 * Number(process.argv[3]));
  for (let index = 0; index < Number(process.argv[2]); index++) {
    await sleep(300 + 200 * Math.random());
    const name = Object.keys(sites)[index % 4];
    const begin = now();
    sites[name]();
    console.log(name, begin, now());
  }
  await sleep(500);
  clearInterval(timer);
  process.exit(0);
}
main();

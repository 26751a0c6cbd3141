// A client of `hubauth oracle` in JavaScript: a small hub is judged step by step.
//
//   node oracle_client.js                      starts `hubauth oracle` itself
//   node oracle_client.js 127.0.0.1:7090       talks to `hubauth oracle --listen 127.0.0.1:7090`
//   node oracle_client.js - --reuse            the hub issues the same credential again: a fault
//
// Exit code 0 if the hub conforms, 1 if it does not, 2 if there is no oracle to talk to.
"use strict";
const { spawn } = require("node:child_process");
const { randomBytes } = require("node:crypto");
const net = require("node:net");
const readline = require("node:readline");

class Oracle {
  constructor(input, output, onClose) {
    this.output = output;
    this.onClose = onClose;
    this.waiting = []; // answers come in the order of the requests
    output.on("error", giveUp);
    const lines = readline.createInterface({ input });
    lines.on("line", (line) => this.waiting.shift()(JSON.parse(line)));
    lines.on("close", () => this.waiting.length && giveUp(new Error("it hung up")));
  }

  static start() {
    const process_ = spawn(process.env.HUBAUTH || "hubauth", ["oracle"], { stdio: ["pipe", "pipe", "inherit"] });
    process_.on("error", giveUp);
    return new Oracle(process_.stdout, process_.stdin, () => process_.stdin.end());
  }

  static connect(address) {
    const [host, port] = address.split(/:(?=\d+$)/);
    const socket = net.connect(Number(port), host);
    return new Oracle(socket, socket, () => socket.end());
  }

  async ask(request) {
    const answer = await new Promise((resolve) => {
      this.waiting.push(resolve);
      this.output.write(JSON.stringify(request) + "\n");
    });
    if (answer.did === "error") throw new Error(answer.error);
    return answer;
  }
}

// The hub under test: a root that knows how to register a device, and nothing else.
class SmallHub {
  constructor(reuse) {
    this.reuse = reuse;
    this.nodes = new Map();
    this.credential = randomBytes(32).toString("base64url");
  }

  handle(input) {
    if (input.kind !== "frame" || input.payload.action !== "register") return [];
    const { device_id } = input.payload.data;
    if (!this.nodes.has(device_id)) this.nodes.set(device_id, this.nodes.size + 2);
    if (!this.reuse) this.credential = randomBytes(32).toString("base64url");
    const data = { code: 1, msg: "ok", device_id, node_id: this.nodes.get(device_id), credential: this.credential };
    const header = { major: 0, msg_id: input.header.msg_id, source: 1 };
    const payload = { action: "register_resp", data: { ...data, role: "node", perms: [] } };
    return [{ kind: "send", link: input.link, header, payload }];
  }
}

const register = (msg_id, device_id) => ({
  kind: "frame",
  link: 1,
  header: { msg_id },
  payload: { action: "register", data: { device_id } },
});

function giveUp(problem) {
  console.error(`no oracle: ${problem.message}`);
  process.exit(2);
}

async function main([address = "-", fault]) {
  const oracle = address === "-" ? Oracle.start() : Oracle.connect(address);
  const hub = new SmallHub(fault === "--reuse");
  await oracle.ask({ do: "init", policy: { dialect: "auth" } });
  const inputs = [{ kind: "link_up", link: 1 }, register(1, "sensor"), register(2, "sensor")];
  for (const input of inputs) {
    const { verdict, why } = await oracle.ask({ do: "compare", input, outputs: hub.handle(input) });
    console.log(`${input.payload?.action ?? input.kind}: ${verdict}`);
    if (verdict !== "conforms") {
      console.log(`  ${why.rule}: ${why.text}\n  expected ${why.expected}\n  seen     ${why.seen}`);
      process.exitCode = 1;
      break;
    }
  }
  oracle.onClose();
}

main(process.argv.slice(2)).catch(giveUp);

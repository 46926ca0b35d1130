// Three witnesses (c2sp.org/tlog-cosignature), written without our own code. As a program, it prints their keys.

import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { pathToFileURL } from "node:url";

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

function makeWitness(number) {
  const seed = Buffer.alloc(32, number);
  const secret = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
  const point = createPublicKey(secret).export({ format: "der", type: "spki" }).subarray(-32);
  const typed = Buffer.concat([Buffer.of(4), point]);
  const name = `witness${number}.test`;
  const id = createHash("sha256").update(`${name}\n`).update(typed).digest().subarray(0, 4);
  return { name, id, secret, key: `${name}+${id.toString("hex")}+${typed.toString("base64")}` };
}

const WITNESSES = [1, 2, 3].map(makeWitness);
export const witnessKeys = WITNESSES.map(({ key }) => key);

// The staple with cosignatures of the first witnesses, one for each time in Unix seconds.
export function cosign(staple, times) {
  const [, checkpoint] = /\n\n([^]*?\n)\n/.exec(staple.proof);
  const lines = times.map((time, i) => {
    const { name, id, secret } = WITNESSES[i];
    const seconds = Buffer.alloc(8);
    seconds.writeBigUInt64BE(BigInt(time));
    const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${checkpoint}`), secret);
    return `— ${name} ${Buffer.concat([id, seconds, signature]).toString("base64")}\n`;
  });
  return { ...staple, proof: staple.proof + lines.join("") };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(witnessKeys.join(" "));

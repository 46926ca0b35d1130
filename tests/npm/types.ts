// Compiled with `tsc --noEmit --strict`, where TypeScript is at hand: what callers write has these types.

import { type Pin, verifyBundle, VerifyError, type VerifyErrorCode } from "countersign-verify";
import { hashChunks, hashFile } from "countersign-verify/node";

declare function load(): Pin | null;
declare function store(pin: Pin): void;

export async function check(bundle: Uint8Array): Promise<string | null> {
  try {
    const facts = await hashFile("app.tar.gz");
    const proven = await verifyBundle(bundle, facts, { project: "https/github.com/443/acme/app", pin: load(), maxAge: "signers", requireCurrent: true });
    store(proven.pin);
    const asOf: Date | null | undefined = proven.freshness?.asOf;
    const names: (string | null)[] = proven.signedBy.map((signer) => signer.name);
    return `${proven.file?.name} ${asOf} ${names}`;
  } catch (error) {
    if (!(error instanceof VerifyError)) throw error;
    if (error.pin) store(error.pin);
    const code: VerifyErrorCode = error.code;
    return code;
  }
}

export async function refuse(): Promise<void> {
  await hashChunks([new Uint8Array(2)], (chunk) => void chunk.byteLength);
  // @ts-expect-error: the project must be named.
  await verifyBundle("{}", null, {});
  // @ts-expect-error: an age is a number.
  await verifyBundle("{}", null, { project: "a/b", maxAge: "1d" });
}

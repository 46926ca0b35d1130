// How a refusal is told.

// `code` is for programs, the message for people. `pin`, if there is one, must be stored all the same.
export class VerifyError extends Error {
  constructor(code, message, { details = [], pin = null, cause } = {}) {
    super(message, { cause });
    this.name = "VerifyError";
    this.code = code;
    this.details = details;
    this.pin = pin;
  }
}

export function refuse(is, code, message, more) {
  if (is) throw new VerifyError(code, message, more);
}

// Gives the errors of `work` a code.
export async function coded(code, work, what = "") {
  try {
    return await work();
  } catch (error) {
    throw new VerifyError(code, what + error.message, { details: error.details, cause: error });
  }
}

package io.ntier.rubbos.web;

/** The request is wrong; the message tells the user which parameter and what is allowed. */
public final class BadRequestException extends RuntimeException {
    public BadRequestException(String message) {
        // No stack trace: it is an answer, not a failure, and hostile input must stay cheap.
        super(message, null, false, false);
    }
}

package io.ntier.rubbos.db;

import java.time.LocalDateTime;

/** A story as a page needs it; what a page does not select is null. {@code writer} is a nickname or, by category, an id. */
public record Story(long id, String title, String body, LocalDateTime date, String writer) {
}

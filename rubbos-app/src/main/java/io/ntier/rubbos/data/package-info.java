/**
 * Generator of the bulletin board's data: a program of its own ({@link io.ntier.rubbos.data.Generate}), not part of the
 * web application. Same profile, seed and reference time give the same bytes.
 */
package io.ntier.rubbos.data;

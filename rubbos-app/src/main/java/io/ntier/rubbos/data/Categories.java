package io.ntier.rubbos.data;

import java.util.List;

/** The 85 categories, ids 0..84: as many as RUBBoS has, with names of our own. */
final class Categories {
    private static final String NAMES = """
            Accessibility, Agriculture, Algorithms, Amateur Radio, Animation, Archaeology, Architecture, Art, Astronomy, Audio,
            Automation, Aviation, Batteries, Biology, Board Games, Books, Bridges, Business, Cameras, Chemistry,
            Cities, Climate, Clocks, Compilers, Computing History, Cooking, Crafts, Cryptography, Cycling, Data Centres,
            Databases, Design, Displays, Documentation, Education, Electronics, Energy, Engineering, Ethics, Fiction,
            File Systems, Films, Fonts, Gardening, Geography, Geology, Governments, Graphics, Hardware, Health,
            Human Languages, Kernels, Keyboards, Laws & Courts, Libraries, Maps, Materials, Mathematics, Measurement, Medicine,
            Music, Networks, News, Oceans, Open Standards, Operating Systems, Optics, Patents, Photography, Physics,
            Privacy, Programming, Psychology, Puzzles, Railways, Recycling, Robots, Science, Security, Space,
            Sports, Statistics, Telephony, Tools, Weather
            """;

    private Categories() {
    }

    static List<String> names() {
        return List.of(NAMES.strip().split(",\\s*"));
    }
}

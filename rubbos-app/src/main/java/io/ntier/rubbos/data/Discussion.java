package io.ntier.rubbos.data;

/** Who answers whom among the comments of one story: comment i answers comment parents[i] (an earlier one), or the story if -1. */
record Discussion(int[] parents, int[] children) {
    static Discussion draw(Draws draws, int comments, double rootShare, int replyWindow) {
        int[] parents = new int[comments];
        int[] children = new int[comments];
        for (int i = 0; i < comments; i++) {
            boolean root = i == 0 || draws.unit() < rootShare;
            parents[i] = root ? -1 : draws.between(Math.max(0, i - replyWindow), i - 1);
            if (!root) {
                children[parents[i]]++;
            }
        }
        return new Discussion(parents, children);
    }

    /** Levels below the comments that answer the story: 0 if nobody answers a comment. */
    int depth() {
        int deepest = 0;
        int[] depth = new int[parents.length];
        for (int i = 0; i < parents.length; i++) {
            depth[i] = parents[i] < 0 ? 0 : depth[parents[i]] + 1;
            deepest = Math.max(deepest, depth[i]);
        }
        return deepest;
    }
}

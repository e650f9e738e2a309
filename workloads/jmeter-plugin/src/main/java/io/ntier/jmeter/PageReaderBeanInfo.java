package io.ntier.jmeter;

/** Form and defaults of {@link PageReader} in JMeter's GUI. */
public class PageReaderBeanInfo extends FormBeanInfo {
    public PageReaderBeanInfo() {
        super(PageReader.class);
        createPropertyGroup("board", new String[] {
            "dictionary", "databaseUsers", "databaseAuthors", "storiesPerPage", "today", "oldestStory"
        });
        createPropertyGroup("check", new String[] {"contentChecks", "contentShare"});
        createPropertyGroup("errors", new String[] {"tries", "retryPauseMs"});
        defaultValue("dictionary", "");
        defaultValue("databaseUsers", 500000);
        defaultValue("databaseAuthors", 50);
        defaultValue("storiesPerPage", 20);
        defaultValue("today", "");
        defaultValue("oldestStory", "");
        defaultValue("contentChecks", "");
        defaultValue("contentShare", 0.01);
        defaultValue("tries", 5);
        defaultValue("retryPauseMs", 1000L);
    }
}

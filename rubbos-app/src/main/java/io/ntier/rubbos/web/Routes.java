package io.ntier.rubbos.web;

import io.ntier.rubbos.interactions.AcceptStory;
import io.ntier.rubbos.interactions.AuthorTask;
import io.ntier.rubbos.interactions.BrowseCategories;
import io.ntier.rubbos.interactions.BrowseStoriesInCategory;
import io.ntier.rubbos.interactions.Interaction;
import io.ntier.rubbos.interactions.ModerateComment;
import io.ntier.rubbos.interactions.OlderStories;
import io.ntier.rubbos.interactions.PostComment;
import io.ntier.rubbos.interactions.RegisterUser;
import io.ntier.rubbos.interactions.RejectStory;
import io.ntier.rubbos.interactions.ReviewStories;
import io.ntier.rubbos.interactions.Search;
import io.ntier.rubbos.interactions.SearchInComments;
import io.ntier.rubbos.interactions.SearchInStories;
import io.ntier.rubbos.interactions.SearchInUsers;
import io.ntier.rubbos.interactions.StoreComment;
import io.ntier.rubbos.interactions.StoreModeratorLog;
import io.ntier.rubbos.interactions.StoreStory;
import io.ntier.rubbos.interactions.StoriesOfTheDay;
import io.ntier.rubbos.interactions.SubmitStory;
import io.ntier.rubbos.interactions.ViewComment;
import io.ntier.rubbos.interactions.ViewStory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Which URL leads to which interaction: /rubbos/servlet/edu.rice.rubbos.servlets.NAME. */
public final class Routes {
    public static final String PREFIX = "/servlet/edu.rice.rubbos.servlets.";

    /** Chooses the interaction by the request's parameters. */
    @FunctionalInterface
    public interface Route {
        Interaction choose(Params params);
    }

    private Routes() {
    }

    /**
     * Servlet name -> interaction. Each servlet has a connection pool of its own (pool_mode per_servlet).
     *
     * @param losesIndex see {@link SearchInComments}
     */
    public static Map<String, Route> all(boolean losesIndex) {
        Map<String, Route> routes = new LinkedHashMap<>();
        routes.put("StoriesOfTheDay", always(new StoriesOfTheDay()));
        routes.put("RegisterUser", always(new RegisterUser()));
        routes.put("BrowseCategories", always(new BrowseCategories()));
        routes.put("BrowseStoriesByCategory", always(new BrowseStoriesInCategory()));
        routes.put("OlderStories", always(new OlderStories()));
        routes.put("ViewStory", always(new ViewStory()));
        routes.put("PostComment", always(new PostComment()));
        routes.put("StoreComment", always(new StoreComment()));
        routes.put("ViewComment", always(new ViewComment()));
        routes.put("ModerateComment", always(new ModerateComment()));
        routes.put("StoreModeratorLog", always(new StoreModeratorLog()));
        routes.put("SubmitStory", always(new SubmitStory()));
        routes.put("StoreStory", always(new StoreStory()));
        routes.put("Search", search(losesIndex));
        routes.put("Author", always(new AuthorTask()));
        routes.put("ReviewStories", always(new ReviewStories()));
        routes.put("AcceptStory", always(new AcceptStory()));
        routes.put("RejectStory", always(new RejectStory()));
        return routes;
    }

    private static Route always(Interaction interaction) {
        return params -> interaction;
    }

    /** One servlet for four interactions: parameter type says what to search; without words there is only the form. */
    private static Route search(boolean losesIndex) {
        Interaction form = new Search();
        List<Interaction> byType = List.of(new SearchInStories(), new SearchInComments(losesIndex), new SearchInUsers());
        return params -> params.has("search") ? byType.get(params.number("type", SearchInStories.TYPE, SearchInUsers.TYPE)) : form;
    }
}

package io.ntier.jmeter;

import java.awt.BorderLayout;
import org.apache.jmeter.gui.util.VerticalPanel;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.gui.AbstractThreadGroupGui;
import org.apache.jorphan.gui.JLabeledChoice;
import org.apache.jorphan.gui.JLabeledTextField;

/** Form of {@link UserGroup}: number of users, kind of threads. */
public class UserGroupGui extends AbstractThreadGroupGui {
    private static final long serialVersionUID = 1;

    private final JLabeledTextField users = new JLabeledTextField("Users");
    private final JLabeledChoice threads =
            new JLabeledChoice("Threads", new String[] {"auto", "virtual", "platform"}, true, false);

    public UserGroupGui() {
        VerticalPanel panel = new VerticalPanel();
        panel.add(users);
        panel.add(threads);
        add(panel, BorderLayout.CENTER);
        clearGui();
    }

    @Override
    public String getLabelResource() {
        return getClass().getSimpleName();
    }

    @Override
    public String getStaticLabel() {
        return "User Group (virtual threads)";
    }

    @Override
    public TestElement makeTestElement() {
        return new UserGroup();
    }

    @Override
    public TestElement createTestElement() {
        UserGroup group = new UserGroup();
        modifyTestElement(group);
        return group;
    }

    @Override
    public void modifyTestElement(TestElement element) {
        super.modifyTestElement(element);
        element.setProperty(AbstractThreadGroup.NUM_THREADS, users.getText());
        element.setProperty(UserGroup.THREADS, threads.getText());
    }

    @Override
    public void configure(TestElement element) {
        super.configure(element);
        users.setText(element.getPropertyAsString(AbstractThreadGroup.NUM_THREADS));
        threads.setText(element.getPropertyAsString(UserGroup.THREADS));
    }

    @Override
    public void clearGui() {
        super.clearGui();
        if (users != null) { // the super constructor calls this before the fields exist
            users.setText("1");
            threads.setText("auto");
        }
    }
}

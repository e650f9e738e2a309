package io.ntier.jmeter;

import java.beans.PropertyDescriptor;
import org.apache.jmeter.testbeans.BeanInfoSupport;
import org.apache.jmeter.testbeans.TestBean;

/** A form whose fields all have a default and may hold ${...} expressions. */
abstract class FormBeanInfo extends BeanInfoSupport {
    FormBeanInfo(Class<? extends TestBean> element) {
        super(element);
    }

    final void defaultValue(String property, Object value) {
        PropertyDescriptor descriptor = property(property);
        descriptor.setValue(NOT_UNDEFINED, Boolean.TRUE);
        descriptor.setValue(DEFAULT, value);
    }
}

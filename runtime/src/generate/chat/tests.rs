use super::*;

fn render(source: &str, messages: &[Message]) -> String {
    ChatTemplate::new(Some(source), "<s>", "</s>")
        .expect("valid")
        .render(messages)
        .expect("renders")
}

#[test]
fn chatml_is_the_fallback() {
    let template = ChatTemplate::new(None, "", "").expect("valid");
    let text = template.render(&[
        Message::new(Role::System, "be brief"),
        Message::new(Role::User, "hi"),
        Message::new(Role::Assistant, "hello"),
    ]);
    assert_eq!(
        text.expect("renders"),
        "<|im_start|>system\nbe brief<|im_end|>\n\
         <|im_start|>user\nhi<|im_end|>\n\
         <|im_start|>assistant\nhello<|im_end|>\n\
         <|im_start|>assistant\n"
    );
}

#[test]
fn templates_use_python_methods_and_whitespace_control() {
    let source = "{{ bos_token }}\n\
        {% for message in messages %}\n    \
        {%- if message['role'] == 'user' %}\n\
        [INST] {{ message['content'].strip() }} [/INST]\n    \
        {%- endif %}\n\
        {% endfor %}";
    let messages = [Message::new(Role::User, "  hi \n")];
    assert_eq!(render(source, &messages), "<s>\n[INST] hi [/INST]");
}

#[test]
fn json_is_written_as_python_writes_it() {
    let source = "{{ {'a': [1, '<é>'], 'b': none} | tojson }}";
    assert_eq!(render(source, &[]), r#"{"a": [1, "<é>"], "b": null}"#);
}

#[test]
fn a_refusal_is_an_error_with_the_template_s_words() {
    let source = "{{ raise_exception('no system role') }}";
    let template = ChatTemplate::new(Some(source), "", "").expect("valid");
    let error = template.render(&[]).expect_err("refuses");
    let ChatError::Refused(message) = error else { panic!("{error}") };
    assert_eq!(message, "no system role");
    assert!(matches!(
        ChatTemplate::new(Some("{% if %}"), "", ""),
        Err(ChatError::Template(_))
    ));
}

/// What `transformers` makes of templates (`bench/chat_templates.py`).
#[test]
fn templates_render_as_the_models_library_renders_them() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        template: String,
        messages: Vec<Message>,
        variables: serde_json::Map<String, serde_json::Value>,
        expected: Option<String>,
        refused: Option<String>,
    }

    let cases: Vec<Case> =
        serde_json::from_str(include_str!("testdata/templates.json"))
            .expect("valid");
    let mut wrong = Vec::new();
    for case in cases {
        let rendered = ChatTemplate::new(Some(&case.template), "<s>", "</s>")
            .and_then(|it| it.render_with(&case.messages, &case.variables));
        let is_right = match (&rendered, &case.expected, &case.refused) {
            (Ok(text), Some(expected), _) => text == expected,
            (Err(ChatError::Refused(message)), None, Some(expected)) => {
                message == expected
            }
            _ => false,
        };
        if !is_right {
            let expected = (case.expected, case.refused);
            wrong.push(format!("{}\n{rendered:?}\n{expected:?}\n", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_template_without_an_end_is_an_error() {
    let render = |source: &str| {
        ChatTemplate::new(Some(source), "", "")
            .and_then(|template| template.render(&[]))
    };
    let nested = "{% for i in range(9999) %}{% for j in range(9999) %}\
                  {% set x = i * j %}{% endfor %}{% endfor %}";
    let error = render(nested).expect_err("too many steps");
    assert!(matches!(error, ChatError::Limit { unit: "steps", .. }));
    let long = "{% set x = 'x' * 100000 %}\
                {% for i in range(9999) %}{{ x }}{% endfor %}";
    let error = render(long).expect_err("too long");
    assert!(matches!(error, ChatError::Limit { unit: "bytes", .. }));
    for source in [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ range(1000000000) | list }}",
        "{{ range(1, 5, 0) | list }}",
        "{{ 'x' * 100000000000 }}",
        "{{ 'a\nb' | indent(10000000000) }}",
        "{{ [] | tojson(indent=10000000000) }}",
        "{{ strftime_now('%Q') }}",
    ] {
        let error = render(source).expect_err(source);
        assert!(matches!(error, ChatError::Render(_)), "{source}: {error}");
    }
}

#[test]
fn the_time_is_written_as_python_writes_it() {
    let write =
        |format, seconds| functions::strftime(format, seconds).expect("known");
    let all = "%Y-%m-%d %H:%M:%S %A %a %B %b %j %I%p %y %e|%%";
    assert_eq!(
        write(all, 1_709_210_096),
        "2024-02-29 12:34:56 Thursday Thu February Feb 060 12PM 24 29|%",
    );
    assert_eq!(
        write(all, 946_684_799),
        "1999-12-31 23:59:59 Friday Fri December Dec 365 11PM 99 31|%",
    );
    assert_eq!(write("%d %b %Y", 0), "01 Jan 1970");
    assert_eq!(write("%d %b %Y", 4_107_542_400), "01 Mar 2100");
}

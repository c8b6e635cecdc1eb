//! One sample per feature: the golden expansions are made of them, and so are the proofs over all expansions.

/// An attribute, its arguments, and the item below it.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) attribute: &'static str,
    pub(super) arguments: &'static str,
    pub(super) item: &'static str,
}

const fn sample(name: &'static str, attribute: &'static str, arguments: &'static str, item: &'static str) -> Sample {
    Sample {
        name,
        attribute,
        arguments,
        item,
    }
}

pub(super) const SAMPLES: &[Sample] = &[
    sample(
        "a_step",
        "step",
        "",
        "
        /// Fetches one page.
        pub async fn fetch(cx: &Cx, url: Url) -> Result<Page> {
            let page = http::get(url).await?;
            if page.is_empty() { return Err(\"empty\".into()); }
            Ok(page)
        }",
    ),
    sample(
        "a_step_without_parameters",
        "step",
        "",
        "async fn ping(cx: &Cx) -> Result<()> { Ok(()) }",
    ),
    sample(
        "a_step_with_eight_parameters",
        "step",
        "",
        "
        async fn wide(cx: &Cx, a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H)
        -> Result<T> { make(a, b, c, d, e, f, g, h) }",
    ),
    sample(
        "a_step_with_all_options",
        "step",
        r#"name = "fetch-page", uses("net"), uses("gpu", 2), owns("cache"), owns("index"),
        estimate(tokens = 2_000, seconds = 30, tool_calls = 1), retry(3, backoff = "200ms"),
        timeout = "5m", once, share, resolve = pages::was_fetched, ignore(trace)"#,
        "
        async fn fetch(cx: &Cx, url: Url, trace: Trace) -> Result<Page> { get(url, trace).await }",
    ),
    sample(
        "a_step_that_is_retried_with_the_backoff_of_the_runtime",
        "step",
        "retry(2)",
        "
        async fn fetch(cx: &Cx, url: Url) -> Result<Page> { get(url).await }",
    ),
    sample(
        "a_step_that_is_retried_on_some_failures",
        "step",
        "retry(4, on = failures::passes)",
        "
        async fn fetch(cx: &Cx, url: Url) -> Result<Page> { get(url).await }",
    ),
    sample(
        "a_step_with_an_estimate_in_part",
        "step",
        "estimate(seconds = 30)",
        "
        async fn wait(cx: &Cx) -> Result<()> { Ok(()) }",
    ),
    sample(
        "a_step_that_had_other_names",
        "step",
        r#"was = "get_page", was = "load-page", retry(2)"#,
        "
        async fn fetch(cx: &Cx, url: Url) -> Result<Page> { get(url).await }",
    ),
    sample(
        "documented_parameters",
        "step",
        "",
        "
        /// Summarises a page.
        ///
        /// Long pages take long.
        async fn summarise(
            cx: &Cx,
            /// The page as it was fetched.
            page: Page,
            /** At most so many words.
             * Fewer are fine. */
            words: u32,
        ) -> Result<Summary> { shorten(page, words) }",
    ),
    sample(
        "a_doc_comment_from_a_file",
        "step",
        "",
        "
        /// Fetches.
        #[doc = include_str!(\"fetch.md\")]
        async fn fetch(cx: &Cx, url: Url) -> Result<Page> { get(url).await }",
    ),
    sample(
        "raw_identifiers",
        "step",
        "ignore(r#in)",
        "async fn r#type(cx: &Cx, r#fn: u32, r#in: u32) -> Result<u32> { Ok(r#fn) }",
    ),
    sample(
        "patterns_that_only_the_body_sees",
        "step",
        "",
        "
        async fn grow(_: &Cx, mut list: Vec<u32>, _unused: u32) -> Result<Vec<u32>> { list.push(1); Ok(list) }",
    ),
    sample(
        "another_result",
        "step",
        "",
        "async fn read(cx: &Cx, path: PathBuf) -> std::io::Result<String> { std::fs::read_to_string(path) }",
    ),
    sample(
        "a_result_under_another_name",
        "step",
        "",
        "async fn read(ctx: &Ctx, place: Place) -> Reply { look(place) }",
    ),
    sample(
        "attributes_of_the_function",
        "step",
        "",
        "
        #[cfg(feature = \"net\")]
        #[deprecated = \"use `get`\"]
        #[must_use]
        #[allow(clippy::too_many_lines, reason = \"a list\")]
        #[expect(unused_variables)]
        #[cfg_attr(docsrs, doc(alias = \"get\"))]
        #[cfg_attr(feature = \"trace\", tracing::instrument)]
        #[inline]
        async fn fetch(cx: &Cx, #[allow(unused)] url: Url) -> Result<Page> { Ok(Page) }",
    ),
    sample(
        "a_visibility",
        "step",
        "",
        "pub(in crate::pages) async fn fetch(cx: &Cx) -> Result<Page> { Ok(Page) }",
    ),
    sample(
        "another_runtime",
        "step",
        "crate = crate::rt::neuron",
        "async fn ping(cx: &Cx) -> Result<()> { Ok(()) }",
    ),
    sample(
        "a_borrow_for_ever_is_owned",
        "step",
        "",
        "
        async fn name(cx: &Cx, given: std::borrow::Cow<'static, str>) -> Result<Cow<'static, str>> { Ok(given) }",
    ),
    sample(
        "an_agent",
        "agent",
        "",
        "
        /// Researches.
        async fn researcher(cx: &Cx, url: Url) -> Result<Summary> {
            let mut pages = Vec::new();
            for link in links(cx, url).await? { pages.push(fetch(cx, link).await?); }
            match pages.len() { 0 => Err(\"nothing\".into()), _ => summarise(cx, pages).await }
        }",
    ),
    sample(
        "an_agent_with_a_plan",
        "agent",
        r#"plan = plans::outline, owns("desk"), uses("net"), estimate(tokens = 9), name = "scout""#,
        "
        async fn researcher(cx: &Cx, url: Url, depth: u8) -> Result<Summary> { go(cx, url, depth).await }",
    ),
    sample(
        "an_orchestrator",
        "orchestrator",
        "",
        "
        /// Digests.
        pub async fn digest(board: &Board, urls: Vec<Url>) -> Result<Report> {
            let parts: Vec<_> = urls.into_iter().map(|url| board.assign(researcher, url)).collect();
            Ok(board.assign(edit, parts).await?)
        }",
    ),
    sample(
        "a_plan",
        "plan",
        "",
        "
        /// Fetches, then summarises.
        pub fn outline(plan: &Plan, /** Where it starts. */ url: Node<Url>, deep: bool) -> Node<Summary> {
            if deep { plan.step(dig, url) } else { plan.step(summarise, plan.step(fetch, url)) }
        }",
    ),
    sample(
        "a_plan_under_another_name_and_a_condition",
        "plan",
        r#"name = "short-outline", crate = rt"#,
        "
        #[cfg(feature = \"short\")]
        #[deprecated]
        fn outline(plan: &Plan) -> Node<Summary> { plan.step(summarise, ()) }",
    ),
    sample(
        "a_plan_that_had_another_name",
        "plan",
        r#"was = "sketch""#,
        "fn outline(plan: &Plan) -> Node<Summary> { plan.step(summarise, ()) }",
    ),
    sample(
        "a_handler",
        "on",
        r#""orders.placed""#,
        "
        /// Ships what was ordered.
        pub async fn ship(event: &Event, order: Order) -> Result<()> {
            if order.is_empty() { return Err(\"empty\".into()); }
            send(event.idempotency_key(), order).await
        }",
    ),
    sample(
        "a_handler_with_all_options",
        "on",
        r#""/input/**", name = "biller", kind("order"), kind("order.again"), from = start, retry(3, on = passes, backoff = "200ms"),
        timeout = "5m", in_flight = 8"#,
        "
        #[cfg(feature = \"bills\")]
        #[deprecated]
        async fn bill(event: &Event, Order { cents, .. }: Order) -> std::io::Result<Append> { Ok(bill_of(event, cents)) }",
    ),
    sample(
        "a_handler_without_a_payload",
        "on",
        r#""**", from = now, crate = rt"#,
        "
        async fn r#match(_: &rt::Event) -> Reply { Ok(()) }",
    ),
    sample(
        "an_agent_that_asks_the_clock",
        "agent",
        "",
        "
        async fn late(cx: &Cx) -> Result<bool> { Ok(std::time::SystemTime::now() > tomorrow(cx).await?) }",
    ),
];

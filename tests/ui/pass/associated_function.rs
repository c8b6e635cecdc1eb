//! A step may stand in an `impl`, in a module, in a function, or be made by a macro.

use neuron::{Cx, Node, Plan, Result, step};

pub struct Pages;

impl Pages {
    /// Fetches.
    #[step(name = "pages-fetch")]
    pub async fn fetch(cx: &Cx, url: String) -> Result<String> {
        let _ = cx;
        Ok(url)
    }
}

mod inner {
    pub mod fetch {
        #[neuron::step(name = "inner-fetch")]
        pub async fn fetch(_: &neuron::Cx, url: String) -> neuron::Result<String> {
            Ok(url)
        }
    }
    pub use fetch::fetch;
}

macro_rules! doubled {
    ($name:ident, $number:ty, $context:ty) => {
        #[step]
        async fn $name(cx: $context, number: $number) -> Result<$number> {
            let _ = cx;
            Ok(number * 2)
        }
    };
}
doubled!(double, u64, &Cx);

fn outline(plan: &Plan) -> Node<String> {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Local {
        url: String,
    }

    #[step]
    async fn local(_: &Cx, url: String) -> Result<Local> {
        Ok(Local { url })
    }

    #[step]
    async fn back(_: &Cx, local: Local) -> Result<String> {
        Ok(local.url)
    }

    let page = plan.step(Pages::fetch, "a");
    plan.step(inner::fetch, plan.step(back, plan.step(local, page)))
}

fn main() {
    let _ = (outline, double);
}

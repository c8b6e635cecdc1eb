use std::sync::Arc;

use crate::scope::Scope;

/// What a body is given: the engine makes it from the scope of the body. Implemented by [`Cx`](crate::Cx) and by the
/// board of an orchestrator, and by nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a context",
    label = "expected `&Cx`, or `&Board` for an orchestrator"
)]
pub trait Context: Send + Sync + Sized + 'static {
    /// The scope of the body that it was given to.
    #[doc(hidden)]
    fn scope(&self) -> &Arc<Scope>;

    /// The context of a body that is about to be driven in `scope`.
    #[doc(hidden)]
    fn of(scope: Arc<Scope>) -> Self;
}

//! Views around other views: the methods that they only pass on.

/// Methods of [`GraphView`](crate::GraphView) that call the same method of another view:
///
/// ```ignore
/// forward_view! { |this| this.whole =>
///     fn count_edges(labels: &LabelFilter, share: Share) -> Result<u64>;
/// }
/// ```
#[macro_export]
macro_rules! forward_view {
    (|$this:ident| $view:expr => $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            let $this = self;
            $view.$name($($argument),*)
        })*
    };
}

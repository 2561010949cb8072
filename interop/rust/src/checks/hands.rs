//! What is done to the broker: wishes, one a line, which whoever started this program fulfils and
//! answers with a line of their own.

use std::io::BufRead;

use crate::world::Checked;

/// Says `please <wish>`, and waits until it is done.
pub(crate) async fn please(wish: String) -> Checked {
    tracing::info!("please {wish}");
    println!("please {wish}");
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut answer)
            .map(|_| answer)
    });
    let answer = answer.await??;
    match answer.trim_end() {
        "done" => Ok(()),
        "" => Err(format!("nobody is there to {wish}").into()),
        answer => Err(format!("{wish}: {answer}").into()),
    }
}

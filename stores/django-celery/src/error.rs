//! Errors of the database, with advice for tables that Django's migrations create.

use sendoff::{Error, ErrorKind};

/// Tables that are missing are not made by this program.
pub(crate) fn of_table(error: Error) -> Error {
    match error.kind() {
        ErrorKind::SchemaMissing | ErrorKind::SchemaTooOld => {
            let why = error.why().unwrap_or("a table or a column is missing").to_owned();
            Error::new(error.kind(), error.what())
                .because(why)
                .next_step(
                    "run `python manage.py migrate django_celery_outbox` with django-celery-outbox 0.4, and check that this \
                     is the database, and the schema, that Django uses",
                )
                .with_source(error)
        }
        _ => error,
    }
}

/// A value of a row cannot be read.
pub(crate) fn odd_row(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Backend, "a row of celery_outbox cannot be read")
        .because(why)
        .next_step("compare the table with the one that django-celery-outbox 0.4 creates")
}

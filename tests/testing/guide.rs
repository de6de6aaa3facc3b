use pgflow::{dev::DevDatabase, prelude::*, testing::run_to_end};
use tokio::sync::OnceCell;

struct Greetings;
struct Style(&'static str);

#[flow(input = Vec<String>, state = Style)]
impl Greetings {
    #[step(map = input)]
    async fn greet(item: &str, state: &Style, ctx: &StepContext) -> StepResult<String> {
        if ctx.attempt() == 1 && item == "Grace" {
            return Err("not at home".into());
        }
        Ok(format!("{} {item},", state.0))
    }

    #[step(depends_on = [greet])]
    async fn letter(greet: &[String]) -> StepResult<String> {
        Ok(greet.join(" "))
    }
}

// A step alone: no database.
#[tokio::test]
async fn a_second_attempt_finds_her() {
    let ctx = StepContext::for_test().attempt(2).build();
    let greeting = Greetings::greet("Grace", &Style("Dear"), &ctx).await;
    assert_eq!(greeting.unwrap(), "Dear Grace,");
}

// The whole flow: one private Postgres for all tests of the program, and a pool for each test.
static DATABASE: OnceCell<DevDatabase> = OnceCell::const_new();

#[tokio::test]
async fn everybody_is_greeted() -> anyhow::Result<()> {
    let database = DATABASE.get_or_try_init(DevDatabase::start).await?;
    let pool = database.migrated_pool().await?;

    let names = vec!["Ada".into(), "Grace".into()];
    let run = run_to_end::<Greetings>(&pool, &Style("Dear"), names).await?;

    let grace = run.task(Step::Greet, 1).expect("one task per name");
    assert_eq!(grace.errors(), ["not at home"]);
    assert_eq!(run.into_output()?.letter, "Dear Ada, Dear Grace,");
    Ok(())
}

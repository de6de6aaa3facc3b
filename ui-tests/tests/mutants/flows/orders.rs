use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub plan: String,
    pub size: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Quote {
    pub price: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invoice(pub u64);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Voucher {
    pub code: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Receipt {
    pub lines: Vec<String>,
}

/// From an order to a receipt.
pub struct OrderFlow;

#[flow(
    input = Order,
    slug = "orders_v2",
    step_enum = OrderStep,
    output = OrderResultData,
    output_derive = [Debug, Clone],
)]
impl OrderFlow {
    /// Asks for a price.
    #[step(
        slug = "priceQuote",
        base_delay = "10s",
    )]
    async fn quote(
        input: Order,
        ctx: StepContext,
    ) -> StepResult<Quote> {
        todo!()
    }

    #[step(
        if = { plan: "premium", size: [1, 2] },
        when_unmet = "skip",
    )]
    async fn voucher(
        input: &Order,
    ) -> StepResult<Option<Voucher>> {
        todo!()
    }

    #[step(
        if_not = { plan: "trial" },
        when_unmet = "skip-cascade",
        when_exhausted = "fail",
    )]
    async fn reserve(
        input: &Order,
    ) -> StepResult<bool> {
        todo!()
    }

    #[step(
        depends_on = [quote, voucher],
    )]
    async fn invoice(
        quote: &Quote,
        voucher: Option<Option<Voucher>>,
    ) -> StepResult<Invoice> {
        todo!()
    }

    #[step(
        depends_on = [invoice, reserve],
        if = { reserve: true },
        when_unmet = "skip",
        max_attempts = 10,
    )]
    async fn collect(
        invoice: Invoice,
    ) -> StepResult<Receipt> {
        todo!()
    }

    #[step(
        depends_on = [collect],
        timeout = "none",
    )]
    async fn archive(
        #[from(collect)]
        paid: &Option<Receipt>,
    ) -> StepResult<()> {
        todo!()
    }
}

#![allow(unused)]

use pgflow::prelude::*;
use pgflow_ui_tests::{Inspection, Lockfile, Package};

pub struct Fifty;

#[flow(input = Lockfile, with_step_queues)]
impl Fifty {
    #[step]
    async fn s0(input: &Lockfile) -> StepResult<Vec<Package>> { unreachable!() }
    #[step(map = s0, max_attempts = 5)]
    async fn s1(item: Package, ctx: &StepContext) -> StepResult<Package> { unreachable!() }
    #[step(depends_on = [s0, s1], if = { s0: [] })]
    async fn s2(s0: &[Package], s1: &[Package]) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s2, s0])]
    async fn s3(s2: Option<&Inspection>, s0: &[Package]) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s3, s0], timeout = "34s")]
    async fn s4(s3: &Inspection, s0: &[Package]) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s4, s3], timeout = "35s")]
    async fn s5(s4: &Inspection, s3: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s5, s4], timeout = "36s")]
    async fn s6(s5: &Inspection, s4: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s6, s5], timeout = "37s")]
    async fn s7(s6: &Inspection, s5: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s7, s6], timeout = "38s")]
    async fn s8(s7: &Inspection, s6: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s8, s7], timeout = "39s")]
    async fn s9(s8: &Inspection, s7: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s9, s8], timeout = "40s")]
    async fn s10(s9: &Inspection, s8: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s10, s9], timeout = "41s")]
    async fn s11(s10: &Inspection, s9: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s11, s10], timeout = "42s")]
    async fn s12(s11: &Inspection, s10: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s12, s11], timeout = "43s")]
    async fn s13(s12: &Inspection, s11: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s13, s12], timeout = "44s")]
    async fn s14(s13: &Inspection, s12: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s14, s13], timeout = "45s")]
    async fn s15(s14: &Inspection, s13: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s15, s14], timeout = "46s")]
    async fn s16(s15: &Inspection, s14: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s16, s15], timeout = "47s")]
    async fn s17(s16: &Inspection, s15: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s17, s16], timeout = "48s")]
    async fn s18(s17: &Inspection, s16: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s18, s17], timeout = "49s")]
    async fn s19(s18: &Inspection, s17: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s19, s18], timeout = "50s")]
    async fn s20(s19: &Inspection, s18: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s20, s19], timeout = "51s")]
    async fn s21(s20: &Inspection, s19: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s21, s20], timeout = "52s")]
    async fn s22(s21: &Inspection, s20: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s22, s21], timeout = "53s")]
    async fn s23(s22: &Inspection, s21: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s23, s22], timeout = "54s")]
    async fn s24(s23: &Inspection, s22: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s24, s23], timeout = "55s")]
    async fn s25(s24: &Inspection, s23: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s25, s24], timeout = "56s")]
    async fn s26(s25: &Inspection, s24: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s26, s25], timeout = "57s")]
    async fn s27(s26: &Inspection, s25: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s27, s26], timeout = "58s")]
    async fn s28(s27: &Inspection, s26: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s28, s27], timeout = "59s")]
    async fn s29(s28: &Inspection, s27: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s29, s28], timeout = "60s")]
    async fn s30(s29: &Package, s28: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s30, s29], timeout = "61s")]
    async fn s31(s30: &Inspection, s29: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s31, s30], timeout = "62s")]
    async fn s32(s31: &Inspection, s30: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s32, s31], timeout = "63s")]
    async fn s33(s32: &Inspection, s31: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s33, s32], timeout = "64s")]
    async fn s34(s33: &Inspection, s32: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s34, s33], timeout = "65s")]
    async fn s35(s34: &Inspection, s33: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s35, s34], timeout = "66s")]
    async fn s36(s35: &Inspection, s34: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s36, s35], timeout = "67s")]
    async fn s37(s36: &Inspection, s35: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s37, s36], timeout = "68s")]
    async fn s38(s37: &Inspection, s36: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s38, s37], timeout = "69s")]
    async fn s39(s38: &Inspection, s37: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s39, s38], timeout = "70s")]
    async fn s40(s39: &Inspection, s38: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s40, s39], timeout = "71s")]
    async fn s41(s40: &Inspection, s39: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s41, s40], timeout = "72s")]
    async fn s42(s41: &Inspection, s40: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s42, s41], timeout = "73s")]
    async fn s43(s42: &Inspection, s41: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s43, s42], timeout = "74s")]
    async fn s44(s43: &Inspection, s42: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s44, s43], timeout = "75s")]
    async fn s45(s44: &Inspection, s43: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s45, s44], timeout = "76s")]
    async fn s46(s45: &Inspection, s44: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s46, s45], timeout = "77s")]
    async fn s47(s46: &Inspection, s45: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s47, s46], timeout = "78s")]
    async fn s48(s47: &Inspection, s46: &Inspection) -> StepResult<Inspection> { unreachable!() }
    #[step(depends_on = [s48, s47], timeout = "79s")]
    async fn s49(s48: &Inspection, s47: &Inspection) -> StepResult<Inspection> { unreachable!() }
}

fn main() {
    let _ = (Step::S0, Step::S49);
}

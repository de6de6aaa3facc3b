//! Thirty steps side by side: with a queue for each they need thirty workers.

super::parallel_steps!(Idle30, "bench_idle30", "bench_idle30_steps",
    s01 s02 s03 s04 s05 s06 s07 s08 s09 s10 s11 s12 s13 s14 s15
    s16 s17 s18 s19 s20 s21 s22 s23 s24 s25 s26 s27 s28 s29 s30
);

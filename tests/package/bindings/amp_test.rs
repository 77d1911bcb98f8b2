// SPDX-License-Identifier: Apache-2.0
// amp_test WEIGHTS RENAMED: checks amp.rs, which `kiln compile --bindings rust` wrote for a model with a state and a
// batched entry.
mod amp;

fn close(got: &[f32], expected: &[f32]) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weights = std::env::args().nth(1).ok_or("requires a file of weights")?;
    let whole: Vec<f32> = (0..256).map(|i| (0.05 * i as f32).sin()).collect();
    let mut model = amp::Model::new()?;
    model.bind(&weights)?;
    let (mut expected, mut got) = ([0.0; 256], [0.0; 256]);
    model.session()?.play(256, &whole, &mut expected)?;
    assert!(expected.iter().any(|sample| sample.abs() > 0.1));

    let mut session = model.session()?; // the state is kept between calls
    session.play(100, &whole[..100], &mut got[..100])?;
    session.play(156, &whole[100..], &mut got[100..])?;
    assert_eq!(got, expected);

    let renamed = std::env::args().nth(2).ok_or("requires the file with other names")?;
    let renames = [("extra", None), ("module.*", Some("*"))];
    let mut other = amp::Model::new()?;
    other.bind_renamed(&renamed, &renames)?;
    other.session()?.play(256, &whole, &mut got)?;
    assert_eq!(got, expected);
    let refused = other.bind_renamed(&renamed, &renames[1..]).unwrap_err();
    assert!(refused.message.contains("\"extra\""), "{refused}");
    let refused = other.bind_renamed(&weights, &renames).unwrap_err();
    assert!(refused.message.contains("rename 0") && refused.message.contains("\"extra\""), "{refused}");

    let mut threaded = amp::Model::with_threads(2)?;
    threaded.bind(&weights)?;
    threaded.session()?.play(256, &whole, &mut got)?;
    assert_eq!(got, expected);

    // Two sequences of 100 and 50 samples run in one call; then the second one continues to its end.
    let (mut call, mut first, mut second) = (model.session()?, model.session()?, model.session()?);
    let rows = [&whole[..100], &whole[..50]].concat();
    let mut driven = vec![0.0; 150];
    call.play_batch(&mut [(&mut first, &[100]), (&mut second, &[50])], &rows, &mut driven)?;
    assert!(close(&driven, &[&expected[..100], &expected[..50]].concat()));
    second.play(206, &whole[50..], &mut got[50..])?;
    assert!(close(&got[50..], &expected[50..]));

    let refused = session.play(3, &whole[..2], &mut got[..3]).unwrap_err();
    assert_eq!(refused.message, "clean: wrong size; expected 3 elements, got 2");
    let refused = session.play(257, &[0.0; 257], &mut [0.0; 257]).unwrap_err();
    assert!(refused.message.contains("samples") && refused.status != 0, "{refused}");
    let refused = session.play(i64::MAX, &[0.0], &mut [0.0]).unwrap_err();
    assert_eq!(refused.message, "clean: wrong size; expected 9223372036854775807 elements, got 1");
    // The sum of the extents does not wrap around.
    let huge = &mut [(&mut first, &[i64::MAX][..]), (&mut second, &[i64::MAX][..])];
    assert!(call.play_batch(huge, &[0.0], &mut [0.0]).is_err());
    assert!(amp::Model::new()?.session()?.play(1, &[0.0], &mut [0.0]).is_err());
    let refused = amp::Model::new()?.bind("/nowhere.safetensors").unwrap_err();
    assert!(refused.message.contains("/nowhere.safetensors"), "{refused}");
    println!("rust: all as expected");
    Ok(())
}

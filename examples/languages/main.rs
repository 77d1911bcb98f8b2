// SPDX-License-Identifier: Apache-2.0
// main WEIGHTS: calls the library by scorer.rs, which `kiln compile --bindings rust` wrote.
mod scorer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weights = std::env::args().nth(1).ok_or("WEIGHTS: missing argument; expected a file")?;
    let mut model = scorer::Model::new()?;
    println!("refused: {}", model.bind("nowhere.safetensors").is_err());
    model.bind(weights)?;
    let mut session = model.session()?;
    let mut y = [0.0; 6];
    session.forward(2, &[1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 0.0, 0.0], &mut y)?;
    let scores: Vec<String> = y.iter().map(|score| format!("{score:.0}")).collect();
    println!("scores: {}", scores.join(" "));
    Ok(())
}

throw new Error('broken at the top');
